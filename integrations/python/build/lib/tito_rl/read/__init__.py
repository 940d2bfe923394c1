"""Samples from what tito writes: `read` picks the reader by the path."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from pathlib import Path

from ..errors import TitoError
from ..sample import Sample
from .jsonl import read_jsonl
from .msgpack_file import read_msgpack
from .parquet import read_parquet
from .segments import is_trajectory, read_trajectory

_BY_SUFFIX = {".jsonl": read_jsonl, ".ndjson": read_jsonl, ".msgpack": read_msgpack, ".parquet": read_parquet}


def read(path: str | PathLike[str]) -> Iterator[Sample]:
    """Samples of an output of ``tito materialize``, or of trajectories as the sandbox left them, in file order.

    ``path`` is a ``.jsonl``, ``.msgpack`` or ``.parquet`` file, a directory of shards (in the order of their names), or a
    directory with trajectories at any depth. Segment files know no reward: see `tito_rl.read.segments`.

    Every sample is yielded, also those that must not train (``excluded``, weight 0); `tito_rl.batch` leaves them out by
    name. Raises TitoError with one line when the file is not one of ours, is of another schema, or breaks a promise.
    """
    place = Path(path)
    if place.is_dir():
        yield from _directory(place)
        return
    if not place.exists():
        raise TitoError(f"{place}: no such file; give an output of `tito materialize` or a trajectory directory")
    reader = _BY_SUFFIX.get(place.suffix)
    if reader is None:
        raise TitoError(f"{place}: the name ends in none of {', '.join(_BY_SUFFIX)}; give an output of `tito materialize`")
    yield from reader(place)


def _directory(place: Path) -> Iterator[Sample]:
    shards = sorted(file for file in place.glob("shard-*") if file.suffix in _BY_SUFFIX)
    if (place / "materialized.json").exists():
        for shard in shards:
            yield from _BY_SUFFIX[shard.suffix](shard)
        return
    if shards:
        raise TitoError(f"{place}: shards without materialized.json; that output was not finished, run tito materialize --resume")
    trajectories = [place] if is_trajectory(place) else sorted(d for d in place.rglob("*") if d.is_dir() and is_trajectory(d))
    if not trajectories:
        raise TitoError(f"{place}: holds neither shards of `tito materialize` nor a trajectory")
    for trajectory in trajectories:
        yield from read_trajectory(trajectory)


__all__ = ["read", "read_jsonl", "read_msgpack", "read_parquet", "read_trajectory"]
