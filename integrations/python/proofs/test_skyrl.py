"""SkyRL 0.4.0: its own batch tensors and policy loss over what `to_skyrl` gives."""

from __future__ import annotations

import pytest
import torch
from common import GRADIENT_BOUND, LOGPROB_BOUND, by_hand, difference, gradient_of, model, padded_logits, report, rows
from tito_rl import batch, skyrl_advantages, to_skyrl

pytest.importorskip("skyrl")


@pytest.mark.parametrize("name", ["samples.jsonl", "turn-split.jsonl", "turn-rewards.jsonl"])
def test_its_tensors_and_loss_have_the_gradient_of_the_rows(name: str) -> None:
    from skyrl.backends.skyrl_train.utils.ppo_utils import ppo_policy_loss
    from skyrl.train.dataset.preprocess import convert_prompts_responses_to_batch_tensors

    net = model()
    found = batch(rows(name))
    output = to_skyrl(found)
    sequences, attention, _, _, loss_mask, logprobs, *_ = convert_prompts_responses_to_batch_tensors(
        0, output["prompt_token_ids"], output["response_ids"], output["rewards"], output["loss_masks"], output["rollout_logprobs"]
    )
    width = loss_mask.shape[1]
    positions = (attention.cumsum(-1) - 1).clamp(min=0)
    logits = padded_logits(net, sequences, attention, positions)[:, -width - 1 : -1]
    scored = torch.log_softmax(logits, -1).gather(-1, sequences[:, -width:, None])[..., 0]
    assert (scored - logprobs)[loss_mask.bool()].abs().max().item() < LOGPROB_BOUND
    advantages = torch.tensor(skyrl_advantages(found)).double()
    loss, _ = ppo_policy_loss(scored, logprobs.double(), advantages, _config(), loss_mask)
    net.zero_grad()
    loss.backward()
    found_gradient = gradient_of(net)
    wanted = by_hand(found, net)
    report("SkyRL", f"gradient, {name}", difference(found_gradient, wanted))
    assert difference(found_gradient, wanted) < GRADIENT_BOUND
    assert sum(output["is_last_step"]) == found.runs


def _config():
    from skyrl.train.config import AlgorithmConfig

    return AlgorithmConfig(policy_loss_type="regular")
