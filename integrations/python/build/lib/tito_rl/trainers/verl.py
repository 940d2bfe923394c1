"""verl: `AgentLoopOutput` for live agent loops, a `DataProto` for whole batches. Tried with verl 0.9.1."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..batches import Batch, batch
from ..check import check, check_version
from ..layouts import pad_left, pad_right, response
from ..sample import Sample


def to_verl(
    samples: Iterable[Sample] | Batch, *, pad_token_id: int, prompt_length: int | None = None, response_length: int | None = None
) -> Any:
    """A ``DataProto`` whose loss with ``loss_agg_mode="token-mean"`` is tito's objective.

    Tensors, B rows, P prompt columns padded left, R response columns padded right: ``prompts`` (B, P) and ``responses`` (B, R)
    int64; ``input_ids``, ``attention_mask``, ``position_ids`` (B, P + R) int64; ``response_mask`` (B, R) int64;
    ``rollout_log_probs`` (B, R) float32; ``advantages`` and ``returns`` (B, R) float32, tito's advantages times
    ``weight x T / (N x trained)``; ``rm_scores`` (B, R) float32, the reward at the last response token. ``uid`` is the group.

    With ``rm_scores`` and ``uid`` verl can compute its own advantages instead: it then counts rows, so materialize such that a
    run is one sample. P and R default to the longest row. Raises TitoError where a row is longer than a given length.
    """
    found = samples if isinstance(samples, Batch) else batch(samples, reduction="token_mean")
    check(found.samples, "verl")
    check_version("verl")
    import torch
    from verl import DataProto

    parts = [response(sample, found) for sample in found]
    prompt_width = prompt_length or max(len(part.prompt_ids) for part in parts)
    width = response_length or max(len(part.response_ids) for part in parts)
    prompts = pad_left([part.prompt_ids for part in parts], prompt_width, pad_token_id, np.int64)
    responses = pad_right([part.response_ids for part in parts], width, pad_token_id, np.int64)
    attention = np.concatenate(
        [
            pad_left([np.ones(len(part.prompt_ids)) for part in parts], prompt_width, 0, np.int64),
            pad_right([np.ones(len(part.response_ids)) for part in parts], width, 0, np.int64),
        ],
        axis=1,
    )
    advantages = pad_right([part.advantages for part in parts], width, 0, np.float32)
    scores = np.zeros((len(parts), width), np.float32)
    for index, (part, sample) in enumerate(zip(parts, found, strict=True)):
        scores[index, len(part.response_ids) - 1] = sample.reward or 0.0
    arrays = {
        "prompts": prompts,
        "responses": responses,
        "input_ids": np.concatenate([prompts, responses], axis=1),
        "attention_mask": attention,
        "position_ids": np.maximum(attention.cumsum(axis=1) - 1, 0),
        "response_mask": pad_right([part.mask for part in parts], width, 0, np.int64),
        "rollout_log_probs": pad_right([part.logprobs for part in parts], width, 0, np.float32),
        "advantages": advantages,
        "returns": advantages.copy(),
        "rm_scores": scores,
    }
    names = {
        "uid": np.array([sample.group_id for sample in found], object),
        "run_id": np.array([sample.run_id for sample in found], object),
    }
    temperature = found.samples[0].temperature
    return DataProto.from_dict(
        tensors={name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()},
        non_tensors=names,
        meta_info={"temperature": 1.0 if temperature is None else temperature},
    )


def to_verl_outputs(samples: Iterable[Sample] | Batch) -> list[Any]:
    """One ``AgentLoopOutput`` a sample, for an agent loop's ``run`` to return.

    ``reward_score`` is the run's reward, ``extra_fields`` hold ``min_global_steps`` and ``max_global_steps`` (the versions of the
    trained tokens, where they have numbers), ``run_id`` and ``weight``.
    """
    found = samples if isinstance(samples, Batch) else batch(samples, reduction="token_mean")
    check(found.samples, "verl")
    check_version("verl")
    from verl.experimental.agent_loop.agent_loop import AgentLoopMetrics, AgentLoopOutput

    made = []
    for sample in found:
        part = response(sample, found)
        extra: dict[str, Any] = {"run_id": sample.run_id, "weight": sample.weight}
        if sample.version_range is not None:
            extra["min_global_steps"], extra["max_global_steps"] = sample.version_range
        made.append(
            AgentLoopOutput(
                prompt_ids=part.prompt_ids.tolist(),
                response_ids=part.response_ids.tolist(),
                response_mask=part.mask.astype(int).tolist(),
                response_logprobs=part.logprobs.tolist(),
                reward_score=sample.reward,
                num_turns=len(sample.turns),
                metrics=AgentLoopMetrics(),
                extra_fields=extra,
            )
        )
    return made
