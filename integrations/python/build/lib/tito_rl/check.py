"""What a trainer cannot express, found before it is asked to. `trainers.json` holds the rules; `tito materialize --check-for` reads the same."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib import metadata, resources
from typing import Any

from .errors import CannotExpress, TitoError
from .sample import Sample

_SHOWN = 3
_NEUTRAL = {
    "top_p": (1,),
    "top_k": (0, -1),
    "min_p": (0,),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "repetition_penalty": (1,),
}


@cache
def rules() -> dict[str, Any]:
    """The table of trainers and rules (`trainers.json`)."""
    text = resources.files(__package__).joinpath("trainers.json").read_text("utf-8")
    return dict(json.loads(text))


def check(samples: Sequence[Sample], trainer: str, *, group_size: int | None = None) -> None:
    """Raises `CannotExpress` when ``trainer`` cannot express these samples, naming the rows and the flag that helps.

    ``samples`` are those that train (see `tito_rl.batch`). With ``group_size`` groups with fewer members count as filled up.
    """
    table = rules()
    if trainer not in table["trainers"]:
        raise TitoError(f"no trainer is called {trainer!r}; known are {', '.join(table['trainers'])}")
    problems = []
    for name in table["trainers"][trainer]["rules"]:
        broken = _full_groups(samples, group_size) if name == "full_groups" else _CHECKS[name](samples)
        if broken:
            rule = table["rules"][name]
            problems.append(f"{rule['says']} ({_some(broken)}); {rule['helps']}")
    if problems:
        raise CannotExpress(trainer, problems)


def check_version(trainer: str) -> None:
    """Raises TitoError when the installed release of the trainer's package is none that was tried, with the way round.

    ``TITO_RL_ANY_VERSION=1`` in the environment lets an untried release through.
    """
    import os

    row = rules()["trainers"][trainer]
    if not row["versions"] or os.environ.get("TITO_RL_ANY_VERSION") == "1":
        return
    try:
        found = metadata.version(row["package"])
    except metadata.PackageNotFoundError as error:
        raise TitoError(f"{row['package']} is not installed; pip install {row['package']}=={row['versions'][-1]}") from error
    if found not in row["versions"]:
        tried = ", ".join(row["versions"])
        raise TitoError(
            f"{row['package']} {found} was not tried with this package (tried: {tried}); "
            "install one of those, or set TITO_RL_ANY_VERSION=1 and compare gradients first"
        )


def name_of(sample: Sample) -> str:
    return f"run {sample.run_id} sample {sample.sample_index}"


def _some(names: Iterable[str]) -> str:
    found = list(dict.fromkeys(names))
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return ", ".join(found[:_SHOWN]) + more


def _one_temperature(samples: Sequence[Sample]) -> list[str]:
    by_value: defaultdict[float, list[str]] = defaultdict(list)
    for sample in samples:
        for turn in sample.trained_turns():
            if turn.temperature is not None:
                by_value[turn.temperature].append(name_of(sample))
    if len(by_value) < 2:
        return []
    return [f"{names[0]} at {value:g}" for value, names in sorted(by_value.items())]


def _known_temperature(samples: Sequence[Sample]) -> list[str]:
    return [
        f"{name_of(sample)} turn {turn.turn}"
        for sample in samples
        for turn in sample.trained_turns()
        if turn.temperature is None
    ]


def _no_filters(samples: Sequence[Sample]) -> list[str]:
    return [
        f"{name_of(sample)} turn {turn.turn}"
        for sample in samples
        for turn in sample.trained_turns()
        if any(getattr(turn, name) not in (None, *neutral) for name, neutral in _NEUTRAL.items())
    ]


def _scalar_advantage(samples: Sequence[Sample]) -> list[str]:
    return [name_of(sample) for sample in samples if len(sample.advantage_per_action)]


def _one_sample_per_run(samples: Sequence[Sample]) -> list[str]:
    counts = Counter(sample.run for sample in samples)
    return [f"run {run[0]} has {count}" for run, count in counts.items() if count > 1]


def _full_groups(samples: Sequence[Sample], group_size: int | None) -> list[str]:
    runs: defaultdict[str, set[object]] = defaultdict(set)
    for sample in samples:
        runs[sample.group_id].add(sample.run)
    if group_size is not None:
        return [f"group {name} has {len(found)}, more than {group_size}" for name, found in runs.items() if len(found) > group_size]
    sizes = Counter(len(found) for found in runs.values())
    if len(sizes) < 2:
        return []
    usual = sizes.most_common(1)[0][0]
    return [f"group {name} has {len(found)}, others {usual}" for name, found in runs.items() if len(found) != usual]


def _numeric_version(samples: Sequence[Sample]) -> list[str]:
    return [name_of(sample) for sample in samples if sample.version_range is None]


def _has_advantage(samples: Sequence[Sample]) -> list[str]:
    return [name_of(sample) for sample in samples if sample.advantage is None and not len(sample.advantage_per_action)]


_CHECKS: dict[str, Callable[[Sequence[Sample]], list[str]]] = {
    "one_temperature": _one_temperature,
    "known_temperature": _known_temperature,
    "no_filters": _no_filters,
    "scalar_advantage": _scalar_advantage,
    "one_sample_per_run": _one_sample_per_run,
    "numeric_version": _numeric_version,
    "has_advantage": _has_advantage,
}
