"""Rows made by hand, and the outputs and segment files that the repository keeps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tito_rl import Sample, Span, Turn, VersionSpan

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture()
def goldens() -> Path:
    return ROOT / "fixtures" / "trajectories" / "goldens"


@pytest.fixture()
def segments() -> Path:
    return ROOT / "fixtures" / "segments" / "v1"


@pytest.fixture()
def job() -> Path:
    return ROOT / "fixtures" / "trajectories" / "job-1"


def made(run: str = "r1", index: int = 0, *, prompt: int = 2, actions: tuple[int, ...] = (3,), **changes) -> Sample:
    """A sample with ``prompt`` prompt tokens and one action span of each length, one context token between two actions."""
    spans = [Span(0, prompt, "prompt", 0, "prompt")]
    mask = [False] * prompt
    turns, versions = [], []
    for turn, length in enumerate(actions):
        if turn:
            spans.append(Span(len(mask), len(mask) + 1, "context", turn, "context"))
            mask.append(False)
        start, end = len(mask), len(mask) + length
        spans.append(Span(start, end, "action", turn, "trained"))
        turns.append(Turn(turn, "main", "stop", 1.0, 1.0, None, None, "processed"))
        versions.append(VersionSpan(start, end, turn, f"step-{turn + 3}", turn + 3))
        mask += [True] * length
    n = len(mask)
    base = Sample(
        run_id=run,
        group_id="g",
        trial_id=run,
        sample_index=index,
        tokens=np.arange(10, 10 + n, dtype=np.int32),
        loss_mask=np.array(mask),
        logprobs=np.where(mask, -np.arange(n, dtype=np.float32) / 8, 0).astype(np.float32),
        weight=1.0,
        advantage=0.5,
        reward=1.0,
        spans=tuple(spans),
        turns=tuple(turns),
        version_spans=tuple(versions),
    )
    return replace(base, **changes)
