"""TRL: what `GRPOTrainer(rollout_func=...)` returns, and the samples of the asynchronous trainer. Tried with trl 1.16.0."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..batches import Batch, batch
from ..check import check, check_version
from ..errors import TitoError
from ..layouts import logprobs32
from ..sample import Sample


def to_trl(samples: Iterable[Sample], *, num_generations: int, order: Sequence[str] | None = None) -> dict[str, Any]:
    """The dict that a ``rollout_func`` of ``GRPOTrainer`` returns: one row a rollout, ``num_generations`` rows a group in a row.

    Keys, each a list with one entry a row: ``prompt_ids`` and ``completion_ids`` (lists of int), ``logprobs`` (list of float,
    completion length), ``env_mask`` (list of 0 and 1, completion length), ``reward`` (float, or None where a row only fills its
    group up), ``group_id``, ``run_id``. The rows are split before the first trained token. `reward_of` is the matching reward
    function: the trainer computes its own advantages from rewards, so tito's ``advantage`` and ``weight`` are not used.

    ``order`` names the groups in the order of the trainer's prompts (one name a prompt); without it, the order in which they
    appear. A group with fewer members is filled up with copies that have reward None: TRL gives them advantage 0 and leaves
    them out of the mean. Set ``shuffle_dataset=False`` and keep ``max_completion_length`` above the longest completion.
    Raises CannotExpress for what TRL cannot take.
    """
    found = batch(samples, reduction="token_mean")
    check(found.samples, "trl", group_size=num_generations)
    check_version("trl")
    groups = found.groups()
    for name in order or ():
        if name not in groups:
            raise TitoError(f"group {name} has no sample that can train; leave its prompt out")
    rows: dict[str, list[Any]] = {
        name: [] for name in ("prompt_ids", "completion_ids", "logprobs", "env_mask", "reward", "group_id", "run_id")
    }
    for name in order or groups:
        members = groups[name]
        for index in range(num_generations):
            sample = members[index] if index < len(members) else members[0]
            split = sample.prompt_length
            rows["prompt_ids"].append(sample.tokens[:split].tolist())
            rows["completion_ids"].append(sample.tokens[split:].tolist())
            rows["logprobs"].append(logprobs32(sample)[split:].tolist())
            rows["env_mask"].append(sample.loss_mask[split:].astype(int).tolist())
            rows["reward"].append(sample.reward if index < len(members) else None)
            rows["group_id"].append(sample.group_id)
            rows["run_id"].append(sample.run_id)
    return rows


def reward_of(reward: list[float | None], **_: Any) -> list[float | None]:
    """A reward function for ``GRPOTrainer(reward_funcs=reward_of)``: the recorded reward."""
    return reward


def to_trl_async(samples: Iterable[Sample] | Batch) -> list[Any]:
    """``RolloutSample`` objects for the rollout buffer of the asynchronous GRPO trainer.

    ``input_ids`` int64 (n,), ``completion_mask`` int64 (n,), ``old_log_probs`` float32 (n,), all of full length;
    ``advantage`` is tito's, times the factor that makes TRL's token mean follow the weights; ``model_version`` is the oldest
    version of the trained tokens.
    """
    found = samples if isinstance(samples, Batch) else batch(samples, reduction="token_mean")
    check(found.samples, "trl-async")
    check_version("trl-async")
    from trl.experimental.async_grpo.async_rollout_worker import RolloutSample

    groups = {name: index for index, name in enumerate(found.groups())}
    made = []
    for sample in found:
        versions = sample.version_range
        assert sample.advantage is not None and versions is not None  # what `check` promises
        made.append(
            RolloutSample(
                prompt=[],
                completion=[],
                input_ids=sample.tokens.astype(np.int64),
                completion_mask=sample.loss_mask.astype(np.int64),
                old_log_probs=logprobs32(sample),
                advantage=sample.advantage * found.factor(sample),
                model_version=versions[0],
                group_id=groups[sample.group_id],
                metrics={"reward": sample.reward or 0.0},
            )
        )
    return made
