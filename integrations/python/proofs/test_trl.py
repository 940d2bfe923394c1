"""TRL 1.16.0: `GRPOTrainer` does a real optimizer step on rows that a rollout function returns."""

from __future__ import annotations

import os

import pytest
import torch
from common import MODEL, Gradient, by_hand, difference, gradient_of, model, report, rows
from tito_rl import CannotExpress, batch, reward_of, to_trl, to_trl_async

pytest.importorskip("trl")
GENERATIONS = 4
STD_EPSILON = 1e-4  # TRL's; tito's is 1e-6, so equal rewards give slightly different advantages
# TRL's fused head computes log probabilities in float32, so its gradient carries rounding that a float64 model does not have.
FLOAT32_BOUND = 3e-6


def one_sample_runs():
    """TRL takes one sample a rollout: the first of each, its own run."""
    return [sample for sample in rows("samples.jsonl") if sample.sample_index == 0]


def trained(samples, loss_type: str, tmp_path, moved: int = 0) -> tuple[Gradient, dict[str, torch.Tensor]]:
    """Gradient of the step that GRPOTrainer makes, and the change of the parameters."""
    os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"
    from datasets import Dataset
    from transformers import AutoTokenizer
    from trl import GRPOConfig, GRPOTrainer

    groups = list(batch(samples).groups())
    caught: dict[str, Gradient] = {}

    def rollout(prompts, trainer):
        made = to_trl(samples, num_generations=GENERATIONS, order=list(dict.fromkeys(prompts)))
        if moved:
            made["env_mask"] = [mask[moved:] + mask[:moved] for mask in made["env_mask"]]
        return made

    class Watched(GRPOTrainer):
        def training_step(self, net, *rest):
            loss = super().training_step(net, *rest)
            caught["gradient"] = gradient_of(self.accelerator.unwrap_model(net))
            return loss

    net = model()
    before = {name: each.detach().clone() for name, each in net.named_parameters()}
    trainer = Watched(
        model=net,
        reward_funcs=reward_of,
        processing_class=AutoTokenizer.from_pretrained(MODEL),
        train_dataset=Dataset.from_list([{"prompt": name} for name in groups]),
        rollout_func=rollout,
        args=GRPOConfig(
            output_dir=str(tmp_path),
            max_steps=1,
            per_device_train_batch_size=GENERATIONS * len(groups),
            num_generations=GENERATIONS,
            max_completion_length=4096,
            learning_rate=1e-3,
            loss_type=loss_type,
            beta=0.0,
            shuffle_dataset=False,
            bf16=False,
            max_grad_norm=0.0,
            gradient_checkpointing=False,
            use_cpu=True,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
        ),
    )
    trainer.train()
    steps = {name: each.detach() - before[name] for name, each in net.named_parameters()}
    return caught["gradient"], steps


def wanted(samples, loss_type: str) -> Gradient:
    """The same step by hand: TRL's advantages from the rewards, its mean over rows or tokens, filled-up rows counted."""
    found = batch(samples)
    advantages = {}
    for members in found.groups().values():
        rewards = torch.tensor([sample.reward for sample in members], dtype=torch.float64)
        for sample, reward in zip(members, rewards, strict=True):
            advantages[id(sample)] = (reward - rewards.mean()) / (rewards.std() + STD_EPSILON)
    groups = found.groups()
    every = [members[i] if i < len(members) else members[0] for members in groups.values() for i in range(GENERATIONS)]
    tokens = sum(sample.trained_tokens for sample in every)
    weight = {"grpo": lambda _: 1 / len(every), "dapo": lambda sample: sample.trained_tokens / tokens}[loss_type]
    longest = max(sample.prompt_length for sample in every)
    return by_hand(
        found,
        model(),
        weight=weight,
        advantage=lambda sample: advantages[id(sample)],
        recorded=False,
        first_position=lambda sample: longest - sample.prompt_length,
    )


@pytest.mark.parametrize("loss_type", ["grpo", "dapo"])
def test_a_real_step_has_the_gradient_of_the_rows(loss_type: str, tmp_path) -> None:
    samples = one_sample_runs()
    gradient, steps = trained(samples, loss_type, tmp_path)
    found = difference(gradient, wanted(samples, loss_type))
    report("TRL", f"gradient, {loss_type}", found)
    assert found < FLOAT32_BOUND
    assert all(step.abs().max() > 0 for name, step in steps.items())


def test_a_mask_moved_by_one_place_has_another_gradient(tmp_path) -> None:
    samples = one_sample_runs()
    gradient, _ = trained(samples, "grpo", tmp_path, moved=1)
    found = difference(gradient, wanted(samples, "grpo"))
    report("TRL", "control: moved by one", found)
    assert found > 0.1


def test_several_samples_of_a_rollout_are_refused_by_name() -> None:
    with pytest.raises(CannotExpress, match="a rollout has several samples.*run .* has [23].*incremental"):
        to_trl(rows("samples.jsonl"), num_generations=GENERATIONS)


def test_the_asynchronous_trainers_packer_keeps_every_trained_token() -> None:
    from trl.experimental.async_grpo.async_rollout_worker import RolloutSample

    found = batch(rows("samples.jsonl"))
    made = to_trl_async(found)
    assert all(isinstance(each, RolloutSample) for each in made)
    assert sum(int(each.completion_mask.sum()) for each in made) == found.trained_tokens
    assert all(len(each.input_ids) == len(each.old_log_probs) == len(each.completion_mask) for each in made)
