"""verl 0.9.1: its vanilla policy loss over a DataProto made from rows, and its agent loop outputs."""

from __future__ import annotations

import pytest
import torch
from common import GRADIENT_BOUND, LOGPROB_BOUND, by_hand, difference, gradient_of, model, padded_logits, report, rows
from tito_rl import batch, to_verl, to_verl_outputs

pytest.importorskip("verl")


def forward(net, data) -> torch.Tensor:
    """Log probabilities of the responses, (B, R), as verl's actor takes them from padded rows."""
    tensors = data.batch
    width = tensors["responses"].shape[1]
    whole = padded_logits(net, tensors["input_ids"], tensors["attention_mask"], tensors["position_ids"])
    logits = whole[:, -width - 1 : -1] / data.meta_info["temperature"]
    return torch.log_softmax(logits, -1).gather(-1, tensors["responses"][..., None])[..., 0]


def loss_of(net, data, advantages=None) -> torch.Tensor:
    from verl.trainer.ppo.core_algos import get_policy_loss_fn
    from verl.workers.config import ActorConfig

    config = ActorConfig(strategy="fsdp", rollout_n=1, ppo_micro_batch_size_per_gpu=1)
    tensors = data.batch
    loss, _ = get_policy_loss_fn("vanilla")(
        old_log_prob=tensors["rollout_log_probs"].double(),
        log_prob=forward(net, data),
        advantages=(tensors["advantages"] if advantages is None else advantages).double(),
        response_mask=tensors["response_mask"],
        loss_agg_mode="token-mean",
        config=config,
    )
    return loss


@pytest.mark.parametrize("name", ["samples.jsonl", "turn-split.jsonl", "turn-rewards.jsonl", "warm.jsonl"])
def test_the_vanilla_loss_over_padded_rows_has_the_gradient_of_the_rows(name: str) -> None:
    net = model()
    found = batch(rows(name))
    data = to_verl(found, pad_token_id=0)
    mask = data.batch["response_mask"].bool()
    assert int(mask.sum()) == found.trained_tokens
    with torch.no_grad():
        worst = (forward(net, data) - data.batch["rollout_log_probs"])[mask].abs().max().item()
    assert worst < LOGPROB_BOUND
    net.zero_grad()
    loss_of(net, data).backward()
    found_gradient = gradient_of(net)
    wanted = by_hand(found, net, temperature=data.meta_info["temperature"])
    report("verl", f"gradient, {name}", difference(found_gradient, wanted))
    assert difference(found_gradient, wanted) < GRADIENT_BOUND


def test_a_mask_moved_by_one_place_has_another_gradient() -> None:
    net = model()
    found = batch(rows("samples.jsonl"))
    data = to_verl(found, pad_token_id=0)
    wanted = by_hand(found, net)
    net.zero_grad()
    for name in ("response_mask", "rollout_log_probs", "advantages"):
        data.batch[name] = torch.roll(data.batch[name], 1, dims=1)
    loss_of(net, data).backward()
    report("verl", "control: moved by one", difference(gradient_of(net), wanted))
    assert difference(gradient_of(net), wanted) > 0.1


def test_agent_loop_outputs_are_verls_own_and_carry_their_versions() -> None:
    found = batch(rows("samples.jsonl"))
    outputs = to_verl_outputs(found)
    assert sum(sum(each.response_mask) for each in outputs) == found.trained_tokens
    for output, sample in zip(outputs, found, strict=True):
        assert output.prompt_ids + output.response_ids == sample.tokens.tolist()
        assert output.as_dict()["rollout_log_probs"].shape == (len(output.response_ids),)
        assert output.extra_fields["min_global_steps"] == sample.version_range[0]
