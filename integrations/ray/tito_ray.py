"""Materializes a job's trials on a Ray cluster.

Each Ray Data task runs ``tito materialize --shard I/N``: a share of whole groups, so that rewards, advantages and weights
are final in every share and no second pass has to bring groups together. A share appears under its name only when it is
whole, with its manifest beside it.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any, Sequence

import ray


def share_path(out: str | os.PathLike[str], index: int, count: int) -> Path:
    """Where share ``index`` of ``count`` lies."""
    return Path(out) / f"share-{index:04d}-of-{count:04d}.parquet"


def materialize(
    trials: str | os.PathLike[str],
    out: str | os.PathLike[str],
    shares: int,
    *,
    tito: Sequence[str] = ("tito",),
    flags: Sequence[str] = (),
    resume: bool = False,
) -> list[Path]:
    """Writes ``shares`` Parquet files into ``out`` and answers their paths.

    ``trials`` and ``out`` must be the same directories on every node (NFS, Lustre, FUSE). ``tito`` is the command on the
    nodes, ``flags`` are further flags of ``tito materialize``. With ``resume`` shares that are finished stay as they are:
    for a job that was stopped, not for one whose trials changed. Raises ``RuntimeError`` with what ``tito`` said.
    """
    if shares < 1:
        raise ValueError("shares must be at least 1")
    out_dir = Path(out).resolve()
    out_dir.mkdir(parents=True, exist_ok=True)
    where, command, more = str(Path(trials).resolve()), list(tito), list(flags)

    def run(row: dict[str, Any]) -> dict[str, Any]:
        index = int(row["id"])
        path = share_path(out_dir, index, shares)
        if resume and Path(f"{path}.manifest.json").exists():
            return {"share": index, "failure": ""}
        made = subprocess.run(
            [*command, "materialize", where, "--out", str(path), "--shard", f"{index}/{shares}", *more],
            capture_output=True,
            text=True,
            check=False,
        )
        failure = "" if made.returncode == 0 else f"exit code {made.returncode}: {made.stderr.strip()}"
        return {"share": index, "failure": failure}

    rows = ray.data.range(shares, override_num_blocks=shares).map(run).take_all()
    failures = [f"share {row['share']}: {row['failure']}" for row in rows if row["failure"]]
    if failures:
        raise RuntimeError("; ".join(sorted(failures)[:5]))
    return [share_path(out_dir, index, shares) for index in range(shares)]
