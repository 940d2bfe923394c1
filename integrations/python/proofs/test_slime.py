"""slime at commit 624b824a: its Sample, its dump and its loss reducer, from a checkout that TITO_SLIME_SOURCE names."""

from __future__ import annotations

import importlib.util
import os
import sys
import types

import pytest
import torch
from common import GRADIENT_BOUND, by_hand, difference, gradient_of, model, policy_gradient, report, rows, token_logprobs
from tito_rl import batch, to_slime
from tito_rl.export import export

SOURCE = os.environ.get("TITO_SLIME_SOURCE")


def load(monkeypatch, name: str, path: str):
    """One module of the checkout, without the packages around it, which need Megatron and a GPU."""
    spec = importlib.util.spec_from_file_location(name, f"{SOURCE}/{path}")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


@pytest.fixture()
def slime(monkeypatch):
    if SOURCE is None:
        pytest.skip("TITO_SLIME_SOURCE is not set: a checkout of slime at 624b824a")
    misc = types.ModuleType("slime.utils.misc")
    misc.decode_int32_meta_array = None
    monkeypatch.setitem(sys.modules, "slime.utils.misc", misc)
    parallel = types.SimpleNamespace(get_context_parallel_world_size=lambda: 1, get_context_parallel_rank=lambda: 0)
    megatron, core = types.ModuleType("megatron"), types.ModuleType("megatron.core")
    core.mpu = parallel
    monkeypatch.setitem(sys.modules, "megatron", megatron)
    monkeypatch.setitem(sys.modules, "megatron.core", core)
    return types.SimpleNamespace(
        Sample=load(monkeypatch, "slime_types", "slime/utils/types.py").Sample,
        reducer=load(monkeypatch, "slime_cp_utils", "slime/backends/megatron_utils/cp_utils.py").get_sum_of_sample_mean,
    )


@pytest.mark.parametrize("name", ["samples.jsonl", "turn-split.jsonl"])
def test_its_reducer_over_its_samples_has_the_gradient_of_the_rows(slime, name: str) -> None:
    net = model()
    found = batch(rows(name), reduction="run_mean")
    made = [slime.Sample.from_dict(row) for row in to_slime(found)]
    masks = [torch.tensor(each.loss_mask) for each in made]
    of_run: dict[int, int] = {}
    for each in made:
        of_run[each.rollout_id] = of_run.get(each.rollout_id, 0) + sum(each.loss_mask)
    reduce = slime.reducer(
        [len(each.tokens) for each in made],
        [each.response_length for each in made],
        masks,
        [torch.tensor(of_run[each.rollout_id]) for each in made],
    )
    losses = []
    for each, sample in zip(made, found, strict=True):
        scored = token_logprobs(net, sample)[-each.response_length :]
        losses.append(policy_gradient(scored, torch.tensor(each.rollout_log_probs).double(), torch.tensor(each.reward).double()))
    net.zero_grad()
    (reduce(torch.cat(losses)) / len(of_run)).backward()
    found_gradient = gradient_of(net)
    wanted = by_hand(found, net)
    report("slime", f"gradient, {name}", difference(found_gradient, wanted))
    assert difference(found_gradient, wanted) < GRADIENT_BOUND


def test_an_exported_dump_is_read_back_as_its_samples(slime, tmp_path) -> None:
    samples = rows("samples.jsonl")
    export(samples, "slime", tmp_path / "rollout_0.pt")
    loaded = torch.load(tmp_path / "rollout_0.pt", weights_only=False)
    made = [slime.Sample.from_dict(each) for each in loaded["samples"]]
    assert [each.tokens for each in made] == [sample.tokens.tolist() for sample in batch(samples)]
    assert made[0].to_dict()["status"] in ("completed", "truncated")
