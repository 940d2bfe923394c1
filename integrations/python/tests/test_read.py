"""Reading: every format gives the same samples, segment files give what the golden files hold, and bad input says what to do."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
from tito_rl import Sample, TitoError, read
from tito_rl.read.msgpack import unpack_one
from tito_rl.read.segments import frames, oldest_version


def fields(sample: Sample) -> dict[str, object]:
    names = [name for name in Sample.__dataclass_fields__ if name not in ("scores", "metadata")]
    plain = {name: getattr(sample, name) for name in names}
    plain["logprobs"] = sample.logprobs.astype(np.float32)  # one format may hold float64
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in plain.items()}


@pytest.mark.parametrize("other", ["msgpack", "parquet"])
def test_every_format_gives_the_same_samples(goldens, other: str) -> None:
    if other == "parquet":
        pytest.importorskip("pyarrow")
    first = [fields(sample) for sample in read(goldens / "default.jsonl")]
    assert len(first) > 5
    assert [fields(sample) for sample in read(goldens / f"default.{other}")] == first


def test_dtypes_are_those_of_the_documentation(goldens) -> None:
    for sample in read(goldens / "default.msgpack"):
        assert sample.tokens.dtype == np.int32
        assert sample.loss_mask.dtype == np.bool_
        assert sample.logprobs.dtype in (np.float32, np.float64)
        assert sample.token_advantages().dtype == np.float32 if sample.advantage is not None else True


def test_segment_files_hold_the_ids_of_the_golden_dump(segments) -> None:
    """The dump beside each file is what tito's own reader says of it."""
    checked = 0
    for file in sorted(segments.glob("*/**/*.seg")):
        if file.parts[-2] in ("hostile", "flipped"):
            continue
        types = [kind for kind, _ in frames(file)]
        dumped = file.with_suffix(".txt").read_text().splitlines()
        shown = [line for line in dumped if line[:1].isdigit() and line.split()[3] != "type-0x80"]
        assert len(types) == len(shown), file
        checked += len(types)
    assert checked > 10


def test_a_trajectory_trains_the_tokens_that_materialize_trains(job, goldens) -> None:
    """Where nothing but the recorded turns decides, both readers agree token by token."""
    materialized = {(s.trajectory_id, tuple(s.tokens)): s for s in read(goldens / "default.jsonl")}
    compared = 0
    for sample in read(job):
        other = materialized.get((sample.trajectory_id, tuple(sample.tokens)))
        if other is None:
            continue
        trained = other.loss_mask
        assert not (trained & ~sample.loss_mask).any(), sample.trajectory_id
        assert np.array_equal(sample.logprobs[trained], other.logprobs[trained].astype(np.float32))
        compared += int(trained.sum())
    assert compared > 40


def test_weights_of_a_trajectory_read_from_segments_sum_to_one(job) -> None:
    sums: dict[str, float] = {}
    for sample in read(job):
        sums[sample.trajectory_id] = sums.get(sample.trajectory_id, 0.0) + sample.weight
    assert all(value == pytest.approx(1) or value == 0 for value in sums.values())


def test_a_flipped_byte_is_an_error_and_a_torn_tail_is_not(segments, tmp_path) -> None:
    source = segments / "trajectory" / "segments" / "000001.seg"
    data = bytearray(source.read_bytes())
    whole = len(list(frames(source)))
    torn = tmp_path / "000001.seg"
    torn.write_bytes(data[:-5])
    assert len(list(frames(torn))) == whole - 1
    data[len(data) // 2] ^= 1
    torn.write_bytes(data)
    with pytest.raises(TitoError, match="tito verify"):
        list(frames(torn))


@pytest.mark.parametrize(("version", "number"), [("120..125", 120), ("step-7", 7), ("v2", 2), ("latest", None), ("step-9..step-12", 9), ("9..latest", None)])
def test_the_oldest_version_of_a_range_counts(version: str, number: int | None) -> None:
    assert oldest_version(version) == number


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda run: run.update(schema="tito.rollout_run/v9"), "schema tito.rollout_run/v9 .* install"),
        (lambda run: run.update(schema="tito.packed_sample/v1"), "without --pack-max-tokens"),
        (lambda run: run.update(schema="other"), "tito materialize"),
        (lambda run: run["samples"][0]["logprobs"].pop(), "mask values"),
        (lambda run: run["samples"][0].update(weight=float("inf")), "no JSON number|not finite"),
        (lambda run: run["samples"][0]["spans"].pop(), "spans end at"),
    ],
)
def test_bad_rows_are_one_line_that_says_what_to_do(goldens, tmp_path, change, message: str) -> None:
    run = json.loads((goldens / "default.jsonl").read_text().splitlines()[0])
    change(run)
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps(run) + "\n")
    with pytest.raises(TitoError, match=message) as caught:
        list(read(file))
    assert "\n" not in str(caught.value)
    assert "rows.jsonl:1" in str(caught.value)


def test_bad_paths_are_one_line_that_says_what_to_do(goldens, tmp_path) -> None:
    with pytest.raises(TitoError, match="no such file"):
        list(read(tmp_path / "nothing.jsonl"))
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(TitoError, match="ends in none of"):
        list(read(tmp_path / "a.txt"))
    with pytest.raises(TitoError, match="neither shards"):
        list(read(tmp_path))
    shutil.copy(goldens / "default.jsonl", tmp_path / "shard-0001-of-0001.jsonl")
    with pytest.raises(TitoError, match="--resume"):
        list(read(tmp_path))
    cut = tmp_path / "cut.msgpack"
    cut.write_bytes((goldens / "default.msgpack").read_bytes()[:-20])
    with pytest.raises(TitoError, match="was the file cut"):
        list(read(cut))


def test_reading_needs_numpy_only(goldens) -> None:
    """Neither pyarrow nor torch nor a trainer is imported for JSONL, msgpack and segments."""
    program = (
        "import sys\n"
        "class Refuse:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('pyarrow', 'torch', 'trl', 'verl', 'tinker', 'msgpack'):\n"
        "            raise ImportError(name)\n"
        "sys.meta_path.insert(0, Refuse())\n"
        "from tito_rl import batch, read\n"
        f"print(len(batch(read({str(goldens / 'default.msgpack')!r}))))\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) > 0


def test_msgpack_reads_every_type_that_tito_writes() -> None:
    data = bytes.fromhex("87a161c0a162c2a163cb3ff8000000000000a164c403010203a16592cd0100d1ff00a166d903c3a978a167cf0000010000000000")
    value, end = unpack_one(memoryview(data))
    assert end == len(data)
    assert {**value, "d": bytes(value["d"])} == {
        "a": None, "b": False, "c": 1.5, "d": b"\x01\x02\x03", "e": [256, -256], "f": "éx", "g": 2**40,
    }  # fmt: skip
    with pytest.raises(TitoError, match="ends early"):
        unpack_one(memoryview(data[:-1]))
    with pytest.raises(TitoError, match="deeper"):
        unpack_one(memoryview(b"\x91" * 64 + b"\xc0"))
