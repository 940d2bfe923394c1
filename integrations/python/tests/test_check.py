"""Refusals: what a trainer cannot express is named with its rows and the flag that helps, and nothing is dropped."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from conftest import made
from tito_rl import CannotExpress, TitoError, check, to_prime_rl, to_slime
from tito_rl.check import check_version, rules

MIXED = [made("a"), made("b")]
MIXED[1] = replace(MIXED[1], turns=tuple(replace(turn, temperature=0.6) for turn in MIXED[1].turns))
UNKNOWN = [replace(made("a"), turns=tuple(replace(turn, temperature=None) for turn in made("a").turns))]
FILTERED = [replace(made("a"), turns=tuple(replace(turn, top_p=0.9) for turn in made("a").turns))]
LISTS = [made("a", advantage=None, advantage_per_action=np.array([1.0]))]
SEVERAL = [made("a", 0, weight=0.5), made("a", 1, weight=0.5)]
RAGGED = [made("a"), made("b"), made("c", group_id="h")]
NAMELESS = [replace(made("a"), version_spans=tuple(replace(span, number=None) for span in made("a").version_spans))]
BROKEN = {
    "one_temperature": MIXED,
    "known_temperature": UNKNOWN,
    "no_filters": FILTERED,
    "scalar_advantage": LISTS,
    "one_sample_per_run": SEVERAL,
    "full_groups": RAGGED,
    "numeric_version": NAMELESS,
    "has_advantage": [made("a", advantage=None)],
}


@pytest.mark.parametrize("trainer", list(rules()["trainers"]))
@pytest.mark.parametrize("rule", list(BROKEN))
def test_a_trainer_refuses_what_its_rules_name_and_nothing_else(trainer: str, rule: str) -> None:
    if rule not in rules()["trainers"][trainer]["rules"]:
        check(BROKEN[rule], trainer)
        return
    with pytest.raises(CannotExpress) as caught:
        check(BROKEN[rule], trainer)
    text = str(caught.value)
    assert rules()["rules"][rule]["helps"] in text
    assert "run a" in text or "group h" in text
    assert "\n" not in text


def test_every_rule_has_a_case() -> None:
    assert set(BROKEN) == set(rules()["rules"])


def test_a_group_size_lets_missing_members_be_filled_up_and_no_more() -> None:
    check(RAGGED, "trl", group_size=2)
    with pytest.raises(CannotExpress, match="group g has 2, more than 1"):
        check(RAGGED, "trl", group_size=1)


def test_long_lists_of_rows_are_counted() -> None:
    with pytest.raises(CannotExpress, match="and 7 more"):
        check([made(f"r{i}", advantage=None) for i in range(10)], "verl")


def test_an_unknown_trainer_and_an_untried_release_are_refused(monkeypatch) -> None:
    with pytest.raises(TitoError, match="known are trl, "):
        check(MIXED, "nothing")
    monkeypatch.setattr("importlib.metadata.version", lambda _: "99.0")
    with pytest.raises(TitoError, match="99.0 was not tried.*TITO_RL_ANY_VERSION"):
        check_version("trl")
    monkeypatch.setenv("TITO_RL_ANY_VERSION", "1")
    check_version("trl")


def test_conversions_without_their_trainer_give_plain_dicts() -> None:
    rows = to_slime([made("a", 0, weight=0.5), made("a", 1, weight=0.5), made("b")])
    assert [row["rollout_id"] for row in rows] == [0, 0, 1]
    assert [row["response_length"] for row in rows] == [3, 3, 3]
    (row,) = to_prime_rl([made("a", prompt=2, actions=(2,))])
    assert row["rl_weights"] == [0, 0, 1, 1]
    assert row["temperatures"] == [1, 1, 1, 1]
