"""Tinker 0.38.0 and fireworks-ai 1.2.30: their own data objects, with the documented importance sampling loss written out."""

from __future__ import annotations

import pytest
import torch
from common import GRADIENT_BOUND, LOGPROB_BOUND, by_hand, difference, gradient_of, model, policy_gradient, report, rows
from tito_rl import batch, to_fireworks, to_tinker


def importance_sampling(net, datum) -> tuple[torch.Tensor, torch.Tensor]:
    """The loss that the service documents: minus the sum over all tokens of ratio x advantage. And the largest error at trained tokens."""
    inputs = {name: tensor.to_torch().double() for name, tensor in datum.loss_fn_inputs.items()}
    ids = torch.tensor([datum.model_input.to_ints()])
    targets = inputs["target_tokens"].long()
    scored = torch.log_softmax(net(input_ids=ids).logits[0], -1).gather(-1, targets[:, None])[:, 0]
    error = (scored - inputs["logprobs"])[inputs["advantages"] != 0].abs()
    return policy_gradient(scored, inputs["logprobs"], inputs["advantages"]).sum(), error.max() if len(error) else torch.zeros(())


@pytest.mark.parametrize("name", ["samples.jsonl", "turn-split.jsonl", "turn-rewards.jsonl"])
@pytest.mark.parametrize(("trainer", "package", "make"), [("Tinker", "tinker", to_tinker), ("Fireworks", "fireworks", to_fireworks)])
def test_its_data_have_the_gradient_of_the_rows(trainer: str, package: str, make, name: str) -> None:
    pytest.importorskip(package)
    net = model()
    found = batch(rows(name), reduction="sum")
    data = make(found)
    net.zero_grad()
    for datum in data:
        loss, error = importance_sampling(net, datum)
        assert float(error) < LOGPROB_BOUND
        loss.backward()
    found_gradient = gradient_of(net)
    wanted = by_hand(found, net)
    report(trainer, f"gradient, {name}", difference(found_gradient, wanted))
    assert difference(found_gradient, wanted) < GRADIENT_BOUND


def test_data_moved_by_one_place_have_another_gradient() -> None:
    pytest.importorskip("tinker")
    net = model()
    found = batch(rows("samples.jsonl"), reduction="sum")
    net.zero_grad()
    for datum in to_tinker(found):
        ids = torch.tensor([datum.model_input.to_ints()])
        inputs = {name: tensor.to_torch().double() for name, tensor in datum.loss_fn_inputs.items()}
        targets = inputs["target_tokens"].long()
        scored = torch.log_softmax(net(input_ids=ids).logits[0], -1).gather(-1, targets[:, None])[:, 0]
        policy_gradient(scored, inputs["logprobs"].roll(1), inputs["advantages"].roll(1)).sum().backward()
    moved = gradient_of(net)
    wanted = by_hand(found, net)
    report("Tinker", "control: moved by one", difference(moved, wanted))
    assert difference(moved, wanted) > 0.1
