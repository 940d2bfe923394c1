"""Samples straight from the segment files that a sandbox left, without a materialization.

A trajectory directory knows what was sampled and not what it was worth: samples from here have no reward, no advantage and
weight 1 over the trajectory. The mask is the strict part of the rules in docs/samples.md: a token trains when its turn has no
defect, is not auxiliary, has a finite log probability of the distribution that it was sampled from, and was answered in
full. What needs more evidence (deliveries, retries, rewards, attempts, recipes) is `tito materialize`'s to decide.

docs/format.md describes the bytes. Checked while reading: header and payload checksums are left to `tito verify`, but the
SHA-256 chain over every frame, and the digest of every prompt, are compared here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import TitoError
from ..sample import Sample, Span, Turn, VersionSpan
from .msgpack import unpack_one

_HEADER = 66
_MAGIC = 0x7469746F
_SEGMENT_HEADER, _TURN, _JOURNAL_HEADER, _COMMIT = 0x01, 0x02, 0x10, 0x12
_FINISHED = ("stop", "length", "tool_calls")
_SETTINGS = ("temperature", "top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty")
_NEUTRAL: dict[str, tuple[float, ...]] = {
    "temperature": (1,), "top_p": (1,), "top_k": (0, -1), "min_p": (0,), "presence_penalty": (0,),
    "frequency_penalty": (0,), "repetition_penalty": (1,),
}  # fmt: skip


def is_trajectory(path: Path) -> bool:
    """True when the directory holds segment files or a journal of ours."""
    return any((path / "segments").glob("*.seg")) or (path / "journal.seg").exists()


def frames(path: str | PathLike[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """(record type, record) of each frame of a segment file or journal, in order.

    A torn tail, as a killed writer leaves it, ends the walk. Raises TitoError at damage: use `tito verify` to see its extent.
    """
    data = memoryview(Path(path).read_bytes())
    at, sequence, chain = 0, 0, bytes(32)
    while at + _HEADER <= len(data) and any(data[at : at + _HEADER]):
        where = f"{path} at byte {at}"
        if data[at] != 0x97:
            raise TitoError(f"{where}: not a frame; see what `tito verify` says")
        length = int.from_bytes(data[at + 62 : at + 66], "big")
        if at + _HEADER + length > len(data):
            return
        (magic, kind, number, _, _, digest, payload), end = unpack_one(data, at)
        unsigned = bytearray(data[at : at + _HEADER])
        unsigned[23:27] = bytes(4)
        unsigned[29:61] = bytes(32)
        expected = hashlib.sha256(chain + unsigned + payload).digest()
        if magic != _MAGIC or number != sequence or bytes(digest) != expected:
            raise TitoError(f"{where}: the frame does not follow the one before it; see what `tito verify` says")
        if kind < 0x80:
            yield kind, unpack_one(payload)[0]
        at, sequence, chain = end, sequence + 1, expected


@dataclass
class _Line:
    """A segment as it grows: ids, which of them were sampled and whether this segment is the one that counts them."""

    tokens: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))
    spans: list[Span] = field(default_factory=list)
    logprobs: np.ndarray = field(default_factory=lambda: np.zeros(0, np.float32))
    turns: dict[int, Turn] = field(default_factory=dict)
    versions: list[VersionSpan] = field(default_factory=list)
    own_turns: int = 0

    def cut(self, length: int) -> _Line:
        """The first ``length`` tokens, with what they show counted elsewhere."""
        spans = [
            Span(s.start, min(s.end, length), s.kind, s.turn, "shared_prefix" if s.kind == "action" else s.reason)
            for s in self.spans
            if s.start < length
        ]
        versions = [
            VersionSpan(v.start, min(v.end, length), v.turn, v.version, v.number) for v in self.versions if v.start < length
        ]
        turns = {s.turn: self.turns[s.turn] for s in spans if s.turn in self.turns}
        return _Line(self.tokens[:length], spans, self.logprobs[:length], turns, versions)


def read_trajectory(path: str | PathLike[str]) -> Iterator[Sample]:
    """One sample a segment of the trajectory at ``path``, in the order of their first turns. Raises TitoError at damage."""
    place = Path(path)
    header, order = _journals(place)
    lines: dict[int, _Line] = {}
    for number, (segment, turn, parent) in enumerate(_turns_in_order(place, order)):
        line = lines.get(segment)
        if line is None:
            line = lines[segment] = _opened(lines, parent)
        _append(line, turn, number, f"{place}: call {turn['call_id']}")
    kept = [line for line in lines.values() if line.own_turns > 0]
    trained = sum(int(_mask_of(line).sum()) for line in kept)
    for index, line in enumerate(kept):
        yield _sample_of(line, index, place, header, trained)


def _journals(place: Path) -> tuple[dict[str, Any], dict[tuple[str, int], int]]:
    """The first journal's header, and the commit number of each (file, sequence number)."""
    header: dict[str, Any] = {}
    order: dict[tuple[str, int], int] = {}
    for file in sorted(place.glob("journal*.seg"), key=lambda f: (len(f.name), f.name)):
        for kind, record in frames(file):
            if kind == _JOURNAL_HEADER and not header:
                header = record
            if kind == _COMMIT:
                order[(record["file"], record["seq"])] = record["commit"]
    return header, order


def _turns_in_order(place: Path, order: dict[tuple[str, int], int]) -> list[tuple[int, dict[str, Any], Any]]:
    """(segment, turn, the segment's parent) in commit order; turns without a commit stand behind the others."""
    found = []
    parents: dict[int, Any] = {}
    for file in sorted((place / "segments").glob("*.seg")):
        segment = int(file.name[:6])
        for sequence, (kind, record) in enumerate(frames(file)):
            if kind == _SEGMENT_HEADER:
                parents.setdefault(segment, record["parent"])
            if kind == _TURN:
                commit = order.get((f"segments/{file.name}", sequence), float("inf"))
                found.append((commit, file.name, sequence, segment, record))
    found.sort(key=lambda each: each[:3])
    return [(segment, record, parents.get(segment)) for _, _, _, segment, record in found]


def _opened(lines: dict[int, _Line], parent: Any) -> _Line:
    if parent is None:
        return _Line()
    if parent["segment"] not in lines:
        raise TitoError(f"segment {parent['segment']} is missing, and another one begins with its ids")
    return lines[parent["segment"]].cut(parent["tokens"])


def _append(line: _Line, turn: dict[str, Any], number: int, where: str) -> None:
    suffix = np.frombuffer(turn["prompt_suffix"], "<i4")
    sampled = np.frombuffer(turn["sampled_ids"], "<i4")
    keep = turn["prompt_keep"]
    prompt = np.concatenate([line.tokens[:keep], suffix]).astype(np.int32)
    if hashlib.sha256(prompt.tobytes()).digest() != bytes(turn["prompt_sha256"]):
        raise TitoError(f"{where}: the prompt does not have the digest on record; see what `tito verify` says")
    if keep < len(line.tokens):  # the line was given up from here on
        rest = line.cut(keep)
        line.spans, line.versions, line.logprobs = rest.spans, rest.versions, rest.logprobs
    if len(suffix):
        kind = "context" if any(span.kind == "action" for span in line.spans) else "prompt"
        line.spans.append(Span(keep, len(prompt), kind, number, kind))
    values, finite = _logprobs(turn, len(sampled))
    reason = _reason(turn, finite)
    end = len(prompt) + len(sampled)
    line.spans.append(Span(len(prompt), end, "action", number, reason))
    line.tokens = np.concatenate([prompt, sampled]).astype(np.int32)
    line.logprobs = np.concatenate([line.logprobs, np.zeros(len(suffix)), np.where(finite, values, 0.0)]).astype(np.float32)
    settings = {name: turn["sampling"].get(name) for name in _SETTINGS}
    line.turns[number] = Turn(
        turn=number, lane=turn["lane"], finish_reason=turn["finish_reason"], logprob_mode=turn["logprob_mode"], **settings
    )
    for span in turn["weight_versions"]:
        start, stop = len(prompt) + span["start"], len(prompt) + span["end"]
        line.versions.append(VersionSpan(start, stop, number, span["version"], oldest_version(span["version"])))
    line.own_turns += 1


def _logprobs(turn: dict[str, Any], count: int) -> tuple[np.ndarray, np.ndarray]:
    stored = turn["logprobs"]
    if stored is None:
        return np.zeros(count), np.zeros(count, bool)
    values = np.frombuffer(stored["f32"], "<f4") if "f32" in stored else np.frombuffer(stored["f64"], "<f8")
    return values, np.isfinite(values) & (values <= 0)


def _reason(turn: dict[str, Any], finite: np.ndarray) -> str:
    if turn["defects"]:
        return "aborted" if turn["finish_reason"] == "abort" else "capture_damage"
    if not finite.all():
        return "logprob_missing"
    settings = turn["sampling"]
    known = all(settings.get(name) is not None for name in ("temperature", "top_p"))
    neutral = all(settings.get(name) is None or settings[name] in values for name, values in _NEUTRAL.items())
    if turn["logprob_mode"] != "processed" and not (known and neutral):
        return "logprob_not_behaviour"
    if turn["finish_reason"] not in _FINISHED:
        return "capture_damage"
    return "auxiliary" if turn["lane"].startswith("aux:") else "trained"


def oldest_version(version: str) -> int | None:
    """The number that a version's name ends with; of a range ``120..125`` the oldest, 120. None when an end has none."""
    tails = [name[len(name.rstrip("0123456789")) :][-15:] for name in version.split("..")]
    return min(map(int, tails)) if all(tails) else None


def _mask_of(line: _Line) -> np.ndarray:
    mask = np.zeros(len(line.tokens), bool)
    for span in line.spans:
        mask[span.start : span.end] = span.reason == "trained"
    return mask


def _sample_of(line: _Line, index: int, place: Path, header: dict[str, Any], trained: int) -> Sample:
    mask = _mask_of(line)
    name = header.get("trajectory_id") or place.name
    run_id = header.get("run_id") or name
    return Sample(
        run_id=run_id,
        group_id=header.get("group_id") or run_id,
        trial_id=header.get("trial_id") or run_id,
        attempt=header.get("attempt") or 0,
        sample_index=index,
        trajectory_id=name,
        tokens=line.tokens,
        loss_mask=mask,
        logprobs=line.logprobs,
        weight=int(mask.sum()) / trained if trained else 0.0,
        finish_reason=line.turns[max(line.turns)].finish_reason,
        spans=tuple(line.spans),
        turns=tuple(line.turns[number] for number in sorted(line.turns)),
        version_spans=tuple(line.versions),
        metadata=header.get("metadata") or {},
    )
