"""What every proof shares: the demo's model, the gradient made by hand from the rows, and how two gradients are compared.

TITO_TRAINER_ROWS names a directory with outputs of `tito materialize` over trials of the embedded engine:
`samples.jsonl` (branches, several samples a run, an excluded run, a run without a reward), `turn-split.jsonl` (the same with
`--split turn`), `turn-rewards.jsonl` (advantages by action) and `warm.jsonl` (sampled at temperature 0.6).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
import torch
from tito_rl import Sample, batch, read
from tito_rl.batches import Batch
from transformers import AutoModelForCausalLM

MODEL = Path(__file__).resolve().parents[3] / "fixtures" / "policy"
LOGPROB_BOUND = 1e-4
GRADIENT_BOUND = 1e-6

Gradient = dict[str, torch.Tensor]


def rows(name: str) -> list[Sample]:
    directory = os.environ.get("TITO_TRAINER_ROWS")
    if directory is None:
        pytest.skip("TITO_TRAINER_ROWS is not set: scripts/trainers/prove.ts makes the rows and sets it")
    return list(read(Path(directory) / name))


def model(dtype: torch.dtype = torch.float64) -> torch.nn.Module:
    """The demo's policy. float64, so that a difference of two gradients is a difference of what they compute.

    Not the library's eager attention, whose softmax is float32 in any case.
    """
    loaded = AutoModelForCausalLM.from_pretrained(MODEL, attn_implementation="sdpa", dtype=dtype)
    return loaded.eval()


def token_logprobs(net: torch.nn.Module, sample: Sample, temperature: float = 1.0, first_position: int = 0) -> torch.Tensor:
    """log pi(tokens[i] | tokens[:i]) for i = 1 .. n - 1.

    ``first_position`` is where a trainer that counts pads puts token 0. It changes nothing but rounding, since the model knows
    distances only: its rotary tables are float32, which makes about 1e-5.
    """
    ids = torch.tensor(sample.tokens.astype("int64"))[None]
    positions = torch.arange(first_position, first_position + ids.shape[1])[None]
    logits = net(input_ids=ids, position_ids=positions).logits[0, :-1] / temperature
    return torch.log_softmax(logits, -1).gather(-1, ids[0, 1:, None])[:, 0]


def padded_logits(net: torch.nn.Module, ids: torch.Tensor, attention: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """Logits of padded rows, (B, T, vocabulary)."""
    return net(input_ids=ids, attention_mask=attention, position_ids=positions).logits


def policy_gradient(logprobs: torch.Tensor, old: torch.Tensor, advantages: torch.Tensor) -> torch.Tensor:
    """The loss of each token: minus the ratio of the probabilities times the advantage."""
    return -torch.exp(logprobs - old) * advantages


def by_hand(
    found: Batch | Iterable[Sample],
    net: torch.nn.Module,
    weight: Callable[[Sample], float] | None = None,
    advantage: Callable[[Sample], torch.Tensor] | None = None,
    temperature: float = 1.0,
    recorded: bool = True,
    first_position: Callable[[Sample], int] = lambda _: 0,
) -> Gradient:
    """(1 / N) x sum over samples of weight x mean over its trained tokens: row by row, without a batch, a pad or a shift helper.

    With ``recorded=False`` the old log probabilities are the model's own, as trainers take them on the first pass.
    """
    found = found if isinstance(found, Batch) else batch(found)
    net.zero_grad()
    for sample in found:
        mask = torch.tensor(sample.loss_mask[1:])
        old = torch.tensor(sample.logprobs[1:]).double()
        values = torch.tensor(sample.token_advantages()[1:]).double() if advantage is None else advantage(sample)
        scored = token_logprobs(net, sample, temperature, first_position(sample))
        loss = policy_gradient(scored, old if recorded else scored.detach(), values)[mask].mean()
        scale = sample.weight / found.runs if weight is None else weight(sample)
        (loss * scale).backward()
    return gradient_of(net)


def gradient_of(net: torch.nn.Module) -> Gradient:
    return {name: each.grad.detach().clone().double() for name, each in net.named_parameters() if each.grad is not None}


def difference(found: Gradient, wanted: Gradient) -> float:
    """The largest relative difference of any parameter's gradient: norm of the difference over norm of the wanted one."""
    assert found.keys() == wanted.keys()
    return max(float((found[name] - wanted[name]).norm() / wanted[name].norm()) for name in wanted)


def report(trainer: str, what: str, value: float) -> None:
    """A line of the table in docs/trainers.md."""
    print(f"PROOF {trainer} | {what} | {value:.1e}", flush=True)
