"""prime-rl at commit 559b4477: its structs and its loss, from a checkout that TITO_PRIME_RL_SOURCE names."""

from __future__ import annotations

import importlib.util
import os
import sys
import types
from types import SimpleNamespace

import pytest
import torch
from common import GRADIENT_BOUND, by_hand, difference, gradient_of, model, report, rows, token_logprobs
from tito_rl import batch, to_prime_rl
from tito_rl.export import export

SOURCE = os.environ.get("TITO_PRIME_RL_SOURCE")


@pytest.fixture()
def prime_rl(monkeypatch):
    """Two modules of the checkout by themselves: what is around them needs a helper package that is on no index."""
    if SOURCE is None:
        pytest.skip("TITO_PRIME_RL_SOURCE is not set: a checkout of prime-rl at 559b4477")
    for name in ("prime_rl", "prime_rl.transports", "prime_rl.transports.rollouts", "prime_rl.configs", "prime_rl.utils"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    configs = types.ModuleType("prime_rl.configs.trainer")
    for name in ("CustomLossConfig", "DefaultLossConfig", "IPOLossConfig", "LossConfig"):
        setattr(configs, name, type(name, (), {}))
    utils = types.ModuleType("prime_rl.utils.utils")
    utils.import_object = None
    monkeypatch.setitem(sys.modules, "prime_rl.configs.trainer", configs)
    monkeypatch.setitem(sys.modules, "prime_rl.utils.utils", utils)
    structs = _load(monkeypatch, "prime_rl.transports.rollouts.types", "transports/rollouts/types.py")
    loss = _load(monkeypatch, "prime_rl.trainer.rl.loss", "trainer/rl/loss.py")
    return SimpleNamespace(
        TrainingSample=structs.TrainingSample, compute_loss=loss.compute_loss, default_loss_fn=loss.default_loss_fn
    )


def _load(monkeypatch, name: str, path: str):
    spec = importlib.util.spec_from_file_location(name, f"{SOURCE}/src/prime_rl/{path}")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["samples.jsonl", "turn-split.jsonl", "turn-rewards.jsonl", "warm.jsonl"])
def test_its_loss_over_its_structs_has_the_gradient_of_the_rows(prime_rl, name: str) -> None:
    net = model()
    found = batch(rows(name))
    made = to_prime_rl(found)
    assert all(isinstance(each, prime_rl.TrainingSample) for each in made)
    config = SimpleNamespace(dppo_mask_high=0.2, dppo_mask_low=0.2, adv_tau=1.0, kl_tau=0.0)
    temperature = made[0].temperatures[-1]
    scored = [torch.cat([torch.zeros(1).double(), token_logprobs(net, sample, found.samples[0].temperature)]) for sample in found]
    tensor = lambda field: [torch.tensor(getattr(each, field)).double() for each in made]  # noqa: E731
    loss, _ = prime_rl.compute_loss(
        trainer_logprobs=scored,
        inference_logprobs=tensor("logprobs"),
        ref_logprobs=None,
        advantages=tensor("advantages"),
        loss_mask=[torch.tensor(each.mask) for each in made],
        rl_weights=tensor("rl_weights"),
        ce_weights=None,
        ref_kl_weights=None,
        rl_loss_fn=lambda inputs: prime_rl.default_loss_fn(inputs, config),
        rl_scale=sum(sum(weight != 0 for weight in each.rl_weights) for each in made),
        ce_scale=1,
        ref_kl_scale=1,
    )
    net.zero_grad()
    loss.backward()
    found_gradient = gradient_of(net)
    wanted = by_hand(found, net, temperature=temperature)
    report("prime-rl", f"gradient, {name}", difference(found_gradient, wanted))
    assert difference(found_gradient, wanted) < GRADIENT_BOUND


def test_an_exported_file_is_read_back_as_its_structs(prime_rl, tmp_path) -> None:
    import msgspec

    samples = rows("samples.jsonl")
    export(samples, "prime-rl", tmp_path / "batch.msgpack")
    found = msgspec.msgpack.decode((tmp_path / "batch.msgpack").read_bytes(), type=list[prime_rl.TrainingSample])
    assert found == to_prime_rl(samples)
