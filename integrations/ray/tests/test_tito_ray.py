"""Real Ray, in local mode, on the repository's trials: the same rows as on one machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import ray

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "integrations/ray"))

from tito_ray import materialize  # noqa: E402

TRIALS = ROOT / "fixtures/trajectories/job-1"
TITO = ("node", str(ROOT / "packages/cli/dist/main.js"))


@pytest.fixture(scope="module", autouse=True)
def cluster():
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def rows(paths) -> list[dict]:
    tables = [pq.read_table(path) for path in paths]
    made = pa.concat_tables(tables).to_pylist()
    return sorted(made, key=lambda row: (row["run_id"], row["trial_id"], row["attempt"], row["sample_index"] or 0))


def test_shares_hold_the_rows_of_one_machine(tmp_path):
    whole = tmp_path / "whole.parquet"
    subprocess.run([*TITO, "materialize", str(TRIALS), "--out", str(whole)], check=True, capture_output=True)
    shares = materialize(TRIALS, tmp_path / "shares", 3, tito=TITO)
    assert len(shares) == 3
    assert rows(shares) == rows([whole])
    assert len(rows(shares)) > 10
    assert sum(1 for share in shares if pq.read_metadata(share).num_rows > 0) > 1


def test_resume_keeps_what_is_finished(tmp_path):
    out = tmp_path / "shares"
    shares = materialize(TRIALS, out, 2, tito=TITO)
    before = [share.stat().st_mtime_ns for share in shares]
    Path(f"{shares[1]}.manifest.json").unlink()
    assert materialize(TRIALS, out, 2, tito=TITO, resume=True) == shares
    after = [share.stat().st_mtime_ns for share in shares]
    assert after[0] == before[0]
    assert after[1] != before[1]


def test_what_tito_refuses_is_raised(tmp_path):
    with pytest.raises(RuntimeError, match="batch-baseline"):
        materialize(TRIALS, tmp_path / "shares", 2, tito=TITO, flags=["--credit", "batch-baseline"])
    with pytest.raises(ValueError):
        materialize(TRIALS, tmp_path / "shares", 0, tito=TITO)
