"""Batches: what is left out is named, and factors make every reduction the same objective."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from conftest import made
from tito_rl import TitoError, batch
from tito_rl.batches import Batch


def objective(found: Batch, loss: Callable[[object], np.ndarray]) -> float:
    """(1 / N) x sum of weight x mean loss over trained tokens."""
    return sum(s.weight * (loss(s) * s.token_advantages())[s.loss_mask].mean() for s in found) / found.runs


def losses(sample) -> np.ndarray:
    return np.cos(sample.tokens.astype(np.float64))


def rows():
    return [
        made("a", 0, actions=(3, 2), weight=5 / 12),
        made("a", 1, actions=(7,), weight=7 / 12),
        made("b", 0, actions=(4,), weight=1.0, advantage=-1.25),
    ]


@pytest.mark.parametrize("reduction", ["token_mean", "sum", "row_mean", "run_mean"])
def test_each_reduction_with_its_factor_is_titos_objective(reduction: str) -> None:
    found = batch(rows(), reduction=reduction)
    wanted = objective(found, losses)
    terms = [(losses(s) * found.token_advantages(s))[s.loss_mask] for s in found]
    got = {
        "token_mean": lambda: sum(t.sum() for t in terms) / found.trained_tokens,
        "sum": lambda: sum(t.sum() for t in terms),
        "row_mean": lambda: sum(t.mean() for t in terms) / len(found),
        "run_mean": lambda: (sum(t.sum() for t in terms[:2]) / 12 + terms[2].mean()) / 2,
    }[reduction]()
    assert got == pytest.approx(wanted, rel=1e-6)


def test_what_cannot_train_is_named() -> None:
    found = batch(
        [
            *rows(),
            made("c", excluded="env_error"),
            made("d", reward=None, advantage=None),
            made("e", advantage=None),
            made("f", weight=0.0),
            made("g", loss_mask=np.zeros(5, bool)),
        ]
    )
    assert {reason: [s.run_id for s in rest] for reason, rest in found.left_out.items()} == {
        "excluded: env_error": ["c"],
        "no reward": ["d"],
        "no advantage": ["e"],
        "weight 0": ["f"],
        "no trained token": ["g"],
    }
    assert [s.run_id for s in found] == ["a", "a", "b"]


def test_whole_groups_leaves_a_broken_group_out_whole() -> None:
    found = batch([*rows(), made("c", group_id="h"), made("d", group_id="h", excluded="timeout")], whole_groups=True)
    assert {s.group_id for s in found} == {"g"}
    assert [s.run_id for s in found.left_out["group is not whole"]] == ["c"]


def test_a_group_that_lacks_members_by_its_size_is_not_whole() -> None:
    found = batch([*rows(), made("c", group_id="h", group_size=2)], whole_groups=True)
    assert [s.run_id for s in found.left_out["group is not whole"]] == ["c"]


def test_nothing_left_is_an_error_that_says_why() -> None:
    with pytest.raises(TitoError, match="1 x excluded: env_error"):
        batch([made(excluded="env_error")])
    with pytest.raises(TitoError, match="the input is empty"):
        batch([])
