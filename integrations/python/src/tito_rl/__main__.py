"""`tito-rl`: what an output holds, whether a trainer can express it, and files for trainers. `tito export` calls this."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from .batches import batch
from .check import check, rules
from .errors import TitoError
from .export import FORMATS, export
from .read import read

_EXAMPLES = """examples:
  tito-rl show samples.parquet
  tito-rl check --for verl samples.parquet
  tito-rl export --to slime samples.parquet rollout_0.pt
exit codes: 0 done, 65 the trainer cannot express these samples, 64 wrong input"""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line. Returns 0, 65 (the trainer cannot express the samples) or 64 (wrong input)."""
    options = _parser().parse_args(arguments)
    try:
        result = _COMMANDS[options.command](options)
    except TitoError as error:
        print(f"tito-rl: {error}", file=sys.stderr)
        return 65 if hasattr(error, "problems") else 64
    print(json.dumps(result) if options.json else "\n".join(f"{name}: {value}" for name, value in result.items()))
    return 0


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("tito-rl", description=__doc__, epilog=_EXAMPLES, formatter_class=raw)
    commands = parser.add_subparsers(dest="command", required=True)
    show = commands.add_parser("show", help="counts: samples, runs, trained tokens, and what cannot train")
    checked = commands.add_parser("check", help="exit 1 and say why when a trainer cannot express the samples")
    checked.add_argument("--for", dest="trainer", required=True, choices=list(rules()["trainers"]))
    checked.add_argument("--group-size", type=int, help="groups with fewer members count as filled up")
    written = commands.add_parser("export", help="write the file that a trainer reads; one file is one optimizer batch")
    written.add_argument("--to", required=True, choices=list(FORMATS))
    written.add_argument("--pad-token-id", type=int, help="verl: id that rows are padded with")
    written.add_argument("--min-reward", type=float, help="sft: only runs with at least this reward")
    written.add_argument("--env-name", default="tito", help="prime-rl: environment name of the samples")
    written.add_argument("--rollout-id", type=int, default=0, help="slime: number of the dump")
    for command in (show, checked, written):
        command.add_argument("path", help="output of tito materialize, directory of shards, or trajectories")
        command.add_argument("--json", action="store_true", help="one JSON object on standard output")
    written.add_argument("out", help="file to write")
    return parser


def _show(options: argparse.Namespace) -> dict[str, object]:
    samples = list(read(options.path))
    trained = sum(sample.trained_tokens for sample in samples)
    found = batch(samples) if any(sample.weight for sample in samples) and any(s.advantage is not None for s in samples) else None
    left_out = {} if found is None else {reason: len(rest) for reason, rest in found.left_out.items()}
    return {
        "samples": len(samples),
        "runs": len({sample.run for sample in samples}),
        "groups": len({sample.group_id for sample in samples}),
        "tokens": sum(len(sample.tokens) for sample in samples),
        "trained_tokens": trained,
        "left_out": left_out,
    }


def _check(options: argparse.Namespace) -> dict[str, object]:
    found = batch(read(options.path))
    check(found.samples, options.trainer, group_size=options.group_size)
    left_out = {reason: len(rest) for reason, rest in found.left_out.items()}
    return {"trainer": options.trainer, "samples": len(found), "runs": found.runs, "left_out": left_out}


def _export(options: argparse.Namespace) -> dict[str, object]:
    chosen = {name: getattr(options, name) for name in ("pad_token_id", "min_reward", "env_name", "rollout_id")}
    return export(read(options.path), options.to, options.out, chosen)


_COMMANDS = {"show": _show, "check": _check, "export": _export}

if __name__ == "__main__":
    raise SystemExit(main())
