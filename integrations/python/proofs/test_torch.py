"""Plain PyTorch: recorded log probabilities are the model's, and the weights mean what they say."""

from __future__ import annotations

import importlib.util

import numpy as np
import torch
from common import (
    GRADIENT_BOUND,
    LOGPROB_BOUND,
    MODEL,
    by_hand,
    difference,
    gradient_of,
    model,
    policy_gradient,
    report,
    rows,
    token_logprobs,
)
from tito_rl import batch
from tito_rl.layouts import next_token


def errors(net, samples, temperature: float = 1.0, moved: int = 0) -> float:
    worst = 0.0
    for sample in samples:
        with torch.no_grad():
            scored = token_logprobs(net, sample, temperature).numpy()
        mask = np.roll(sample.loss_mask, moved)[1:]
        recorded = np.roll(sample.logprobs, moved)[1:]
        worst = max(worst, float(np.abs(scored - recorded)[mask].max()))
    return worst


def test_recorded_log_probabilities_are_the_models() -> None:
    samples = batch(rows("samples.jsonl")).samples
    worst = errors(model(torch.float32), samples)
    report("PyTorch", "log probabilities", worst)
    assert worst < LOGPROB_BOUND


def test_arrays_moved_by_one_place_are_far_off() -> None:
    assert errors(model(torch.float32), batch(rows("samples.jsonl")).samples, moved=1) > 1


def test_log_probabilities_of_another_temperature_need_that_temperature() -> None:
    samples = batch(rows("warm.jsonl")).samples
    net = model(torch.float32)
    assert {sample.temperature for sample in samples} == {0.6}
    assert errors(net, samples, 0.6) < LOGPROB_BOUND
    assert errors(net, samples, 1.0) > 0.01


def test_splitting_a_run_into_samples_does_not_change_the_gradient() -> None:
    net = model()
    whole, split = batch(rows("samples.jsonl")), batch(rows("turn-split.jsonl"))
    assert len(split) > len(whole) and split.trained_tokens == whole.trained_tokens
    wanted = by_hand(whole, net)
    found = by_hand(split, net)
    report("PyTorch", "split by turn", difference(found, wanted))
    assert difference(found, wanted) < GRADIENT_BOUND
    row_mean = by_hand(split, net, weight=lambda _: 1 / len(split))
    report("PyTorch", "control: a mean over rows", difference(row_mean, wanted))
    assert difference(row_mean, wanted) > 0.1


def test_each_reduction_with_its_factor_gives_the_same_gradient() -> None:
    net = model()
    samples = rows("samples.jsonl")
    wanted = by_hand(batch(samples), net)
    for reduction in ("token_mean", "sum", "row_mean"):
        found = batch(samples, reduction=reduction)
        net.zero_grad()
        for sample in found:
            line = next_token(sample, found)
            losses = policy_gradient(
                token_logprobs(net, sample), torch.tensor(line.logprobs).double(), torch.tensor(line.advantages).double()
            )[torch.tensor(line.mask)]
            match reduction:
                case "token_mean":
                    (losses.sum() / found.trained_tokens).backward()
                case "sum":
                    losses.sum().backward()
                case "row_mean":
                    (losses.mean() / len(found)).backward()
        got = {name: each.grad.clone() for name, each in net.named_parameters()}
        report("PyTorch", f"reduction {reduction}", difference(got, wanted))
        assert difference(got, wanted) < GRADIENT_BOUND


def test_the_example_step_has_the_gradient_of_the_rows() -> None:
    """`examples/trainers/grpo_step.py`, batches of padded rows and all. Its log probabilities are float32."""
    path = MODEL.parents[1] / "examples" / "trainers" / "grpo_step.py"
    spec = importlib.util.spec_from_file_location("grpo_step", path)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    net = model()

    class Caught:
        """An optimizer that keeps the gradient and changes nothing."""

        def step(self) -> None:
            self.gradient = gradient_of(net)

        def zero_grad(self) -> None:
            net.zero_grad()

    optimizer = Caught()
    net.zero_grad()
    ratio = example.step(net, optimizer, rows("samples.jsonl"))
    wanted = by_hand(batch(rows("samples.jsonl")), net)
    found = difference(optimizer.gradient, wanted)
    report("PyTorch", "gradient, examples/trainers/grpo_step.py", found)
    assert abs(ratio - 1) < LOGPROB_BOUND
    assert found < 1e-5
