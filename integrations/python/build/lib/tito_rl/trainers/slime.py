"""slime and Miles: `Sample` dicts with tito's advantage as the reward. Tried with slime's commit 624b824a, which is on no index."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..batches import Batch, batch
from ..check import check
from ..layouts import response
from ..sample import Sample

_STATUS = {"stop": "completed", "tool_calls": "completed", "length": "truncated", "abort": "aborted"}


def to_slime(samples: Iterable[Sample] | Batch) -> list[dict[str, Any]]:
    """What ``slime.utils.types.Sample.to_dict()`` gives, one dict a sample; ``Sample.from_dict`` takes them back.

    ``tokens`` whole, ``response_length``, ``loss_mask`` (0, 1) and ``rollout_log_probs`` of that length; ``rollout_id`` is the
    same for all samples of a run, so slime's reducer divides by the run's trained tokens and then by the runs, which is what
    tito's weights say. ``reward`` is tito's **advantage** times the run's weight: start slime with
    ``--disable-rewards-normalization --use-rollout-logprobs`` (and ``--rollout-temperature`` as recorded), else it normalises it
    once more by the shape of the batch.
    """
    found = samples if isinstance(samples, Batch) else batch(samples, reduction="run_mean")
    check(found.samples, "slime")
    runs = {run: index for index, run in enumerate(dict.fromkeys(sample.run for sample in found))}
    groups = {name: index for index, name in enumerate(found.groups())}
    return [_row(sample, found, index, runs[sample.run], groups[sample.group_id]) for index, sample in enumerate(found)]


def _row(sample: Sample, found: Batch, index: int, run: int, group: int) -> dict[str, Any]:
    part = response(sample, found)
    assert sample.advantage is not None  # what `check` promises
    return {
        "group_index": group,
        "index": index,
        "rollout_id": run,
        "prompt": "",
        "tokens": sample.tokens.tolist(),
        "response": "",
        "response_length": len(part.response_ids),
        "label": None,
        "reward": sample.advantage * found.factor(sample),
        "loss_mask": part.mask.astype(int).tolist(),
        "rollout_log_probs": part.logprobs.tolist(),
        "weight_versions": list(dict.fromkeys(span.version for span in sample.version_spans)),
        "remove_sample": False,
        "status": _STATUS.get(sample.finish_reason, "failed"),
        "metadata": {"run_id": sample.run_id, "sample_index": sample.sample_index, "reward": sample.reward},
        "spec_info": {},
        "prefix_cache_info": {},
    }


def slime_dump(rows: list[dict[str, Any]], rollout_id: int = 0) -> dict[str, Any]:
    """What slime's ``--load-debug-rollout-data`` reads once ``torch.save`` has written it."""
    return {"rollout_id": rollout_id, "samples": rows}
