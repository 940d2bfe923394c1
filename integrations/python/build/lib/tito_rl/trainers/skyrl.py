"""SkyRL: the `GeneratorOutput` that a generator returns, and the advantages to put in the batch. Tried with skyrl 0.4.0."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..batches import Batch, batch
from ..check import check, check_version
from ..layouts import response
from ..sample import Sample


def to_skyrl(samples: Iterable[Sample] | Batch) -> dict[str, Any]:
    """A ``GeneratorOutput`` for step-wise training: rows of one run adjacent, in order, the last one marked.

    Lists with one entry a row: ``prompt_token_ids``, ``response_ids`` (int), ``loss_masks`` (0, 1), ``rollout_logprobs`` (float),
    all but the first of the response's length; ``rewards`` per token, the run's reward at the last response token of its last row;
    ``trajectory_ids`` and ``is_last_step``. SkyRL's own estimators then give a run's advantage to all its rows, and its reductions
    count tokens or rows. `skyrl_advantages` gives tito's advantages in their place, with weights that follow the runs.
    """
    found = samples if isinstance(samples, Batch) else batch(samples, reduction="token_mean")
    check(found.samples, "skyrl")
    check_version("skyrl")
    from skyrl.train.generators.base import TrajectoryID

    by_run: dict[Any, list[Sample]] = {}
    for sample in found:
        by_run.setdefault(sample.run, []).append(sample)
    seen: dict[str, int] = {}
    output: dict[str, Any] = {
        name: []
        for name in (
            "prompt_token_ids", "response_ids", "rewards", "loss_masks", "stop_reasons", "rollout_logprobs", "trajectory_ids",
            "is_last_step",
        )
    }  # fmt: skip
    for rows in by_run.values():
        group = rows[0].group_id
        identity = TrajectoryID(instance_id=group, repetition_id=seen.get(group, 0))
        seen[group] = identity.repetition_id + 1
        for index, sample in enumerate(rows):
            part = response(sample, found)
            last = index == len(rows) - 1
            rewards = [0.0] * len(part.response_ids)
            rewards[-1] = (sample.reward or 0.0) if last else 0.0
            output["prompt_token_ids"].append(part.prompt_ids.tolist())
            output["response_ids"].append(part.response_ids.tolist())
            output["rewards"].append(rewards)
            output["loss_masks"].append(part.mask.astype(int).tolist())
            output["rollout_logprobs"].append(part.logprobs.tolist())
            output["stop_reasons"].append("length" if sample.finish_reason == "length" else "stop")
            output["trajectory_ids"].append(identity)
            output["is_last_step"].append(last)
    return {**output, "rollout_metrics": None}


def skyrl_advantages(samples: Iterable[Sample] | Batch) -> np.ndarray:
    """float32, (rows, longest response), right-aligned as SkyRL's response tensors are: advantages whose *sum* over masked
    tokens is tito's objective. Rows stand in the order of `to_skyrl`. They replace ``advantages`` of the training batch
    after SkyRL's reduction, which is multiplied into the advantages before a summed loss.
    """
    found = samples if isinstance(samples, Batch) else batch(samples, reduction="token_mean")
    summed = Batch(found.samples, found.left_out, "sum")
    by_run: dict[Any, list[Sample]] = {}
    for sample in summed:
        by_run.setdefault(sample.run, []).append(sample)
    parts = [response(sample, summed) for rows in by_run.values() for sample in rows]
    block = np.zeros((len(parts), max(len(part.response_ids) for part in parts)), np.float32)
    for index, part in enumerate(parts):
        block[index, block.shape[1] - len(part.advantages) :] = part.advantages
    return block
