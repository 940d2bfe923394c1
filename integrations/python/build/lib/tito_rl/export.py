"""Files that a trainer reads by itself, written from samples. One file holds one optimizer batch: factors are those of the file."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from .batches import Batch, batch
from .check import check
from .errors import TitoError
from .layouts import next_token
from .sample import Sample
from .trainers.prime_rl import FIELDS, to_prime_rl
from .trainers.sft import to_sft
from .trainers.slime import slime_dump, to_slime
from .trainers.verl import to_verl


def export(samples: Iterable[Sample], to: str, out: str | os.PathLike[str], options: dict[str, Any] | None = None) -> dict[str, Any]:
    """Writes ``out`` for trainer ``to`` (a key of `FORMATS`), whole or not at all; returns what was written and left out.

    ``options``: ``pad_token_id`` (verl, required), ``min_reward`` (sft), ``env_name`` (prime-rl), ``rollout_id`` (slime).
    Raises CannotExpress for what the trainer cannot take, TitoError for wrong options or a missing library.
    """
    if to not in FORMATS:
        raise TitoError(f"no file format for {to!r}; known are {', '.join(FORMATS)} (trl and skyrl take objects: see tito_rl.to_trl)")
    place = Path(out)
    temporary = place.with_name(f"{place.name}.{os.getpid()}.tmp")
    try:
        summary = FORMATS[to](samples, temporary, options or {})
        os.replace(temporary, place)
    finally:
        temporary.unlink(missing_ok=True)
    return {"to": to, "out": str(place), **summary}


def _summary(found: Batch) -> dict[str, Any]:
    return {
        "samples": len(found),
        "runs": found.runs,
        "trained_tokens": found.trained_tokens,
        "left_out": {reason: len(rest) for reason, rest in found.left_out.items()},
    }


def _next_token_lines(trainer: str, mask_key: str | None) -> Callable[..., dict[str, Any]]:
    def write(samples: Iterable[Sample], out: Path, options: dict[str, Any]) -> dict[str, Any]:
        found = batch(samples, reduction="sum")
        check(found.samples, trainer)
        with open(out, "w", encoding="utf-8") as lines:
            for sample in found:
                line = next_token(sample, found)
                inputs = {
                    "target_tokens": line.target_ids.tolist(),
                    "logprobs": line.logprobs.tolist(),
                    "advantages": line.advantages.tolist(),
                }
                if mask_key is not None:
                    inputs[mask_key] = line.mask.astype(float).tolist()
                chunk = {"type": "encoded_text", "tokens": line.input_ids.tolist()}
                lines.write(json.dumps({"model_input": {"chunks": [chunk]}, "loss_fn_inputs": inputs}) + "\n")
        return _summary(found)

    return write


def _slime(samples: Iterable[Sample], out: Path, options: dict[str, Any]) -> dict[str, Any]:
    torch = _library("torch", "slime's dump is a torch file")
    found = batch(samples, reduction="run_mean")
    torch.save(slime_dump(to_slime(found), int(options.get("rollout_id", 0))), out)
    return _summary(found)


def _verl(samples: Iterable[Sample], out: Path, options: dict[str, Any]) -> dict[str, Any]:
    if options.get("pad_token_id") is None:
        raise TitoError("verl's batch is padded: give --pad-token-id (the tokenizer's pad_token_id)")
    found = batch(samples, reduction="token_mean")
    to_verl(found, pad_token_id=int(options["pad_token_id"])).save_to_disk(out)
    return _summary(found)


def _prime_rl(samples: Iterable[Sample], out: Path, options: dict[str, Any]) -> dict[str, Any]:
    msgspec = _library("msgspec", "prime-rl's batches are msgspec structs")
    found = batch(samples, reduction="token_mean")
    rows = to_prime_rl(found, env_name=str(options.get("env_name", "tito")))
    if rows and isinstance(rows[0], dict):
        rows = [_positional(row) for row in rows]
    out.write_bytes(msgspec.msgpack.encode(rows))
    return _summary(found)


_PRIME_RL_ORDER = (
    "token_ids", "mask", "logprobs", "temperatures", "env_name", "ref_logprobs", "mm_kwargs", "routed_experts",
    "mm_token_type_ids", "rl_weights", "ce_weights", "ref_kl_weights", "advantages",
)  # fmt: skip


def _positional(row: dict[str, Any]) -> list[Any]:
    """The struct as prime-rl's transport encodes it: an array of its fields in order."""
    assert set(row) == set(FIELDS)
    return [row.get(name) for name in _PRIME_RL_ORDER]


def _sft(samples: Iterable[Sample], out: Path, options: dict[str, Any]) -> dict[str, Any]:
    pyarrow = _library("pyarrow", "the rows are a Parquet file")
    import pyarrow.parquet as parquet

    rows = to_sft(samples, min_reward=options.get("min_reward"))
    ids = pyarrow.list_(pyarrow.int32())
    schema = pyarrow.schema(
        [
            ("input_ids", ids),
            ("loss_mask", pyarrow.list_(pyarrow.int8())),
            ("labels", ids),
            ("run_id", pyarrow.string()),
            ("reward", pyarrow.float64()),
        ]
    )
    parquet.write_table(pyarrow.Table.from_pylist(rows, schema), out)
    return {"samples": len(rows), "trained_tokens": sum(sum(row["loss_mask"]) for row in rows)}


def _library(name: str, why: str) -> Any:
    try:
        return __import__(name)
    except ImportError as error:
        raise TitoError(f"{why}, and {name} is not installed; pip install {name}") from error


FORMATS: dict[str, Callable[..., dict[str, Any]]] = {
    "slime": _slime,
    "verl": _verl,
    "tinker": _next_token_lines("tinker", None),
    "fireworks": _next_token_lines("fireworks", "weights"),
    "prime-rl": _prime_rl,
    "sft": _sft,
}
"""Trainers with a file format of their own, by name."""
