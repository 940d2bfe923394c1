"""Supervised warm starts and rejection sampling: ids and masks of the runs that are good enough, without credit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..errors import TitoError
from ..sample import Sample


def to_sft(samples: Iterable[Sample], *, min_reward: float | None = None) -> list[dict[str, Any]]:
    """Rows with ``input_ids`` (int), ``loss_mask`` and ``labels`` (-100 where not trained), of length n, unshifted.

    Takes samples of runs that are not excluded, with a trained token and, with ``min_reward``, a reward of at least that.
    Raises TitoError when none is left.
    """
    rows = []
    for sample in samples:
        if sample.excluded is not None or sample.trained_tokens == 0:
            continue
        if min_reward is not None and (sample.reward is None or sample.reward < min_reward):
            continue
        labels = [token if trained else -100 for token, trained in zip(sample.tokens.tolist(), sample.loss_mask.tolist(), strict=True)]
        rows.append(
            {
                "input_ids": sample.tokens.tolist(),
                "loss_mask": sample.loss_mask.astype(int).tolist(),
                "labels": labels,
                "run_id": sample.run_id,
                "reward": sample.reward,
            }
        )
    if not rows:
        wanted = "" if min_reward is None else f" with a reward of at least {min_reward:g}"
        raise TitoError(f"no sample can train{wanted}")
    return rows
