"""Exports: files appear whole or not at all, and say what they left out."""

from __future__ import annotations

import json

import pytest
from conftest import made
from tito_rl.__main__ import main
from tito_rl.errors import TitoError
from tito_rl.export import export


def test_tinker_lines_hold_the_shifted_line(tmp_path) -> None:
    out = tmp_path / "batch.jsonl"
    summary = export([made("a", prompt=2, actions=(2,)), made("b", excluded="timeout")], "tinker", out)
    (line,) = map(json.loads, out.read_text().splitlines())
    assert line["model_input"]["chunks"] == [{"type": "encoded_text", "tokens": [10, 11, 12]}]
    assert line["loss_fn_inputs"]["target_tokens"] == [11, 12, 13]
    assert line["loss_fn_inputs"]["advantages"] == [0, 0.25, 0.25]
    assert summary["left_out"] == {"excluded: timeout": 1}


def test_a_refused_export_leaves_no_file(tmp_path) -> None:
    with pytest.raises(TitoError):
        export([made("a", advantage=None, reward=None)], "fireworks", tmp_path / "batch.jsonl")
    assert list(tmp_path.iterdir()) == []


def test_a_padded_batch_needs_a_pad_id(tmp_path) -> None:
    with pytest.raises(TitoError, match="--pad-token-id"):
        export([made("a")], "verl", tmp_path / "batch.dp")


def test_the_command_exits_65_for_what_a_trainer_cannot_express_and_64_for_wrong_input(goldens, tmp_path, capsys) -> None:
    assert main(["show", str(goldens / "default.jsonl"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["samples"] > 5
    assert main(["check", "--for", "trl", str(goldens / "default.jsonl")]) == 65
    assert "trl cannot express" in capsys.readouterr().err
    assert main(["check", "--for", "trl", str(tmp_path / "none.jsonl")]) == 64
    assert "no such file" in capsys.readouterr().err
