"""msgpack: one run a map, one after the other."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from os import PathLike, stat

from ..errors import TitoError
from ..sample import Sample
from .msgpack import unpack_one
from .rows import samples_of_run


def read_msgpack(path: str | PathLike[str]) -> Iterator[Sample]:
    """Samples of a msgpack output, a run at a time, with arrays that share the file's memory. Raises TitoError with the byte."""
    if stat(path).st_size == 0:
        return
    with open(path, "rb") as file:
        data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    at = 0
    while at < len(data):
        where = f"{path} at byte {at}"
        try:
            run, at = unpack_one(data, at)
        except TitoError as error:
            raise TitoError(f"{where}: {error}; was the file cut?") from error
        if not isinstance(run, dict):
            raise TitoError(f"{where}: not a run; give a file that `tito materialize` wrote")
        yield from samples_of_run(run, where)
