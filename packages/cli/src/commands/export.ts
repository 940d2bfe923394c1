import { spawnSync } from "node:child_process";
import { TitoError } from "@tito/format";
import { Option } from "commander";
import type { Register } from "./command.js";

interface ExportFlags {
  to: string;
  out: string;
  python: string;
  padTokenId?: string;
  minReward?: string;
  envName?: string;
  rolloutId?: string;
  json?: boolean;
}

/** What `python -m tito_rl` ends with, and what it means here. */
const CANNOT_EXPRESS = 65;

/**
 * `tito export`: the file that a trainer reads. Trainers' files are Python's own serialisations, so the Python package writes them; this command
 * finds it and says how to get it.
 */
export const registerExport: Register = (program) => {
  program
    .command("export")
    .summary("write samples as the file that a trainer reads")
    .description(
      "One file is one optimizer batch: advantages carry the weights of its runs. What the trainer cannot express is refused, and what cannot train is listed.\nNeeds Python 3.10 or newer with the package in integrations/python (pip install); docs/trainers.md has each trainer's file and its flags.\n\n  tito export samples.parquet --to slime --out rollout_0.pt\n  tito export samples.jsonl --to sft --min-reward 1 --out warm.parquet",
    )
    .argument("<samples>", "output of tito materialize: a file or a directory of shards")
    .addOption(
      new Option("--to <trainer>", "slime, verl, tinker, fireworks, prime-rl or sft")
        .choices(["slime", "verl", "tinker", "fireworks", "prime-rl", "sft"])
        .makeOptionMandatory(),
    )
    .requiredOption("--out <file>", "file to write; it appears whole or not at all")
    .option("--pad-token-id <id>", "verl: id that rows are padded with")
    .option("--min-reward <reward>", "sft: only runs with at least this reward")
    .option("--env-name <name>", "prime-rl: environment name of the samples")
    .option("--rollout-id <n>", "slime: number of the dump")
    .option("--python <program>", "Python to use", process.env.TITO_PYTHON ?? "python3")
    .option("--json", "one JSON object: what was written and what was left out")
    .action(runExport);
};

function runExport(samples: string, flags: ExportFlags): void {
  const given: [string, string | undefined][] = [
    ["--pad-token-id", flags.padTokenId],
    ["--min-reward", flags.minReward],
    ["--env-name", flags.envName],
    ["--rollout-id", flags.rolloutId],
  ];
  const options = given.flatMap(([name, value]) => (value === undefined ? [] : [name, value]));
  const json = flags.json === true ? ["--json"] : [];
  const args = ["-m", "tito_rl", "export", "--to", flags.to, ...options, ...json, "--", samples, flags.out];
  const run = spawnSync(flags.python, args, { stdio: ["ignore", "inherit", "pipe"], encoding: "utf8" });
  if (run.error !== undefined) throw missing(`${flags.python} cannot be started`);
  if (/No module named '?tito_rl/.test(run.stderr)) throw missing(`${flags.python} does not have the package tito_rl`);
  if (run.status === 0) {
    process.stderr.write(run.stderr);
    return;
  }
  const message = run.stderr.trim().replace(/^tito-rl: /, "");
  throw new TitoError(run.status === CANNOT_EXPRESS ? "cannot_express" : "usage", message);
}

function missing(what: string): TitoError {
  return new TitoError("not_found", what, {
    hint: "pip install the package in integrations/python into that Python, or name another one with --python",
  });
}
