"""From one run of an output, as JSON or msgpack hold it, to samples. Parquet rows take the same path."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ..errors import TitoError
from ..sample import Sample, Span, Turn, VersionSpan

SCHEMA = "tito.rollout_run/v1"
PACKED_SCHEMA = "tito.packed_sample/v1"


def samples_of_run(run: Mapping[str, Any], where: str) -> Iterator[Sample]:
    """The samples of one run. ``where`` names the file and the place in it, for errors."""
    check_schema(run.get("schema"), where)
    for sample in run["samples"]:
        yield sample_of(run, sample, where)


def check_schema(schema: object, where: str) -> None:
    if schema == SCHEMA:
        return
    if schema == PACKED_SCHEMA:
        raise TitoError(f"{where}: packed rows hold several samples each; materialize without --pack-max-tokens")
    if isinstance(schema, str) and schema.startswith("tito.rollout_run/"):
        raise TitoError(f"{where}: schema {schema} is not {SCHEMA}; install a tito-rl that knows it")
    raise TitoError(f"{where}: no {SCHEMA} (schema {schema!r}); give a file that `tito materialize` wrote")


def sample_of(run: Mapping[str, Any], sample: Mapping[str, Any], where: str) -> Sample:
    """One sample; ``run`` holds the fields of its run. Raises TitoError where arrays disagree or a value is not finite."""
    at = f"{where}: run {run['run_id']} sample {sample['sample_index']}"
    advantage = sample["advantage"]
    per_action = sample.get("advantage_per_action")
    if isinstance(advantage, list):  # outputs of versions that gave either in one field
        advantage, per_action = None, advantage
    group = run.get("group") or {}
    made = Sample(
        run_id=run["run_id"],
        group_id=run["group_id"],
        trial_id=run["trial_id"],
        attempt=run["attempt"],
        sample_index=sample["sample_index"],
        trajectory_id=sample["trajectory_id"],
        tokens=array_of(sample["tokens"], np.int32),
        loss_mask=array_of(sample["loss_mask"], np.uint8).astype(bool),
        logprobs=array_of(sample["logprobs"], np.float32),
        advantage=None if advantage is None else float(advantage),
        advantage_per_action=np.asarray([] if per_action is None else per_action, np.float64),
        weight=float(sample["weight"]),
        reward=None if run["reward"] is None else float(run["reward"]),
        excluded=run["excluded"],
        finish_reason=sample["finish_reason"],
        termination=run.get("termination"),
        spans=tuple(Span(s["start"], s["end"], s["kind"], s["turn"], s["reason"]) for s in sample["spans"]),
        turns=_turns(run, sample),
        version_spans=tuple(
            VersionSpan(span["start"], span["end"], turn["turn"], span["version"], span["number"])
            for turn in sample.get("turns") or ()
            for span in turn["weight_versions"]
        ),
        model=run.get("model"),
        group_size=group.get("size"),
        scores=run.get("scores") or {},
        metadata=run.get("metadata") or {},
    )
    check_sample(made, at)
    return made


def _turns(run: Mapping[str, Any], sample: Mapping[str, Any]) -> tuple[Turn, ...]:
    rows = sample.get("turns")
    if rows is not None:
        return tuple(Turn(**{name: row[name] for name in Turn.__dataclass_fields__}) for row in rows)
    # Outputs of versions that did not say it by turn: the run's settings hold for all turns when there is one set of them.
    settings = run.get("sampling") or []
    one = settings[0] if len(settings) == 1 else {}
    numbers = sorted({span["turn"] for span in sample["spans"] if span["kind"] == "action"})
    values = (one.get("temperature"), one.get("top_p"), one.get("top_k"), one.get("min_p"))
    return tuple(Turn(number, "unknown", "unknown", *values, "unknown") for number in numbers)


def array_of(value: Any, dtype: type) -> np.ndarray:
    """An array from a list, a numpy array, or msgpack's ``{dtype, shape, data}``. float64 log probabilities stay float64."""
    if isinstance(value, Mapping):
        found = np.frombuffer(value["data"], np.dtype(value["dtype"]))
        return found if found.dtype == np.float64 else found.astype(dtype, copy=False)
    if isinstance(value, np.ndarray) and value.dtype == np.float64:
        return value
    return np.asarray(value, dtype)


def check_sample(sample: Sample, at: str) -> None:
    """Raises TitoError unless lengths agree, spans cover the tokens once, and all numbers that train are finite."""
    n = len(sample.tokens)
    if not (len(sample.loss_mask) == len(sample.logprobs) == n):
        raise TitoError(f"{at}: {n} tokens, {len(sample.loss_mask)} mask values, {len(sample.logprobs)} log probabilities")
    if not np.isfinite(sample.logprobs).all():
        raise TitoError(f"{at}: log probability {int(np.flatnonzero(~np.isfinite(sample.logprobs))[0])} is not finite")
    place = 0
    for span in sample.spans:
        if span.start != place or span.end < span.start:
            raise TitoError(f"{at}: spans do not cover the tokens once, at token {place}")
        place = span.end
    if place != n:
        raise TitoError(f"{at}: spans end at {place} of {n} tokens")
    numbers = [sample.weight, *(value for value in (sample.advantage, sample.reward) if value is not None)]
    if not all(map(math.isfinite, numbers)) or not np.isfinite(sample.advantage_per_action).all():
        raise TitoError(f"{at}: weight, advantage or reward is not finite")
    if n and sample.loss_mask[0]:
        raise TitoError(f"{at}: token 0 is trained, and nothing precedes it")
    actions = sum(span.kind == "action" for span in sample.spans)
    if len(sample.advantage_per_action) not in (0, actions):
        raise TitoError(f"{at}: {len(sample.advantage_per_action)} advantages for {actions} action spans")
