"""Parquet: one sample a row with the run's columns repeated. Needs pyarrow (`pip install 'tito-rl[parquet]'`)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from os import PathLike
from typing import Any

from ..errors import TitoError
from ..sample import Sample
from .rows import PACKED_SCHEMA, check_schema, sample_of

_ARRAYS = ("tokens", "loss_mask", "logprobs", "advantage_per_action")


def read_parquet(path: str | PathLike[str]) -> Iterator[Sample]:
    """Samples of a Parquet output, a row group at a time. Rows of runs without samples are passed over.

    Raises TitoError when pyarrow is missing or the file holds something else.
    """
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise TitoError(f"{path}: reading Parquet needs pyarrow; pip install 'tito-rl[parquet]', or materialize JSONL or msgpack") from error
    try:
        file = parquet.ParquetFile(path)
    except (pyarrow.ArrowInvalid, OSError) as error:
        raise TitoError(f"{path}: not a whole Parquet file ({error})") from error
    names = set(file.schema_arrow.names)
    if "sample_index" not in names:
        check_schema(PACKED_SCHEMA if "parts" in names else None, str(path))
    for group in range(file.num_row_groups):
        table = file.read_row_group(group)
        columns = {name: table.column(name).combine_chunks() for name in table.column_names if name in _ARRAYS}
        rows = table.drop_columns(list(columns)).to_pylist()
        for index, row in enumerate(rows):
            where = f"{path} row group {group} row {index}"
            check_schema(row["schema"], where)
            if row["sample_index"] is None:
                continue
            arrays = {name: column[index].values.to_numpy(zero_copy_only=False) for name, column in columns.items()}
            yield sample_of(_run_of(row), {**row, **arrays, "turns": row.get("sample_turns")}, where)


def _run_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """The run's fields as the other formats nest them."""
    return {
        **{name: row.get(name) for name in ("run_id", "group_id", "trial_id", "attempt", "reward", "excluded", "termination", "model")},
        "group": {"size": row.get("group_size")},
        "scores": _pairs(row.get("scores"), "name", _score),
        "metadata": _pairs(row.get("metadata"), "key", lambda pair: pair["value"]),
        "sampling": _settings(row.get("sampling")),
    }


def _pairs(value: Any, key: str, of: Callable[[Mapping[str, Any]], Any]) -> dict[str, Any]:
    """A list of records as a dict; earlier outputs hold JSON text."""
    if isinstance(value, str):
        return dict(json.loads(value))
    return {record[key]: of(record) for record in value or ()}


def _score(record: Mapping[str, Any]) -> Any:
    """A number has ``number``, a text ``text``, a boolean both, null neither."""
    number, text = record["number"], record["text"]
    if number is None:
        return text
    return number if text is None else text == "true"


def _settings(value: Any) -> list[Any]:
    if isinstance(value, str):
        return list(json.loads(value))
    return [json.loads(text) for text in value or ()]
