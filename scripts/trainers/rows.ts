/** The rows that the proofs read: trials of the embedded engine, materialized in four ways. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { execa } from "execa";
import { root, tito } from "../demo/processes.js";

const OUTPUTS = [
  { name: "samples.jsonl", trials: "neutral", flags: ["--exclusions"] },
  { name: "turn-split.jsonl", trials: "neutral", flags: ["--exclusions", "--split", "turn"] },
  { name: "turn-rewards.jsonl", trials: "neutral", flags: ["--exclusions", "--turn-rewards"] },
  { name: "warm.jsonl", trials: "warm", flags: [] },
] as const;

/** Makes trials and outputs below `dir`; answers the directory for TITO_TRAINER_ROWS. */
export async function makeRows(dir: string): Promise<string> {
  for (const [name, temperature] of [
    ["neutral", "1"],
    ["warm", "0.6"],
  ] as const) {
    const script = join(root, "scripts/trainers/trials.ts");
    await execa(process.execPath, ["--import", "tsx", script, join(dir, name), "--temperature", temperature], {
      cwd: root,
    });
  }
  const rows = join(dir, "rows");
  mkdirSync(rows, { recursive: true });
  for (const { name, trials, flags } of OUTPUTS) {
    const files: Record<string, string> = {
      "--exclusions": "exclusions.jsonl",
      "--turn-rewards": "turn-rewards.jsonl",
    };
    const given = flags.flatMap((flag) => (flag in files ? [flag, join(dir, trials, files[flag]!)] : [flag]));
    const run = await tito(["materialize", join(dir, trials, "trials"), "--out", join(rows, name), ...given]);
    if (run.exitCode !== 0) throw new Error(`materialize ${name}: exit ${run.exitCode}\n${run.stderr}`);
  }
  return rows;
}
