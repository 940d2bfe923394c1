"""JSONL: one run a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from os import PathLike

from ..errors import TitoError
from ..sample import Sample
from .rows import samples_of_run


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")


def read_jsonl(path: str | PathLike[str]) -> Iterator[Sample]:
    """Samples of a JSONL output, a line at a time. Raises TitoError with the line's number."""
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            where = f"{path}:{number}"
            try:
                run = json.loads(line, parse_constant=_no_constant)
            except ValueError as error:
                raise TitoError(f"{where}: not a JSON line ({error}); was the file cut?") from error
            if not isinstance(run, dict):
                raise TitoError(f"{where}: not a run; give a file that `tito materialize` wrote")
            yield from samples_of_run(run, where)
