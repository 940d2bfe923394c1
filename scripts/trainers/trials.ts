/**
 * Trials for the proofs of trainer exports: real calls of the embedded engine, with branches, several samples a run, an excluded
 * run, a run without a reward, and rewards by turn. `node --import tsx scripts/trainers/trials.ts DIR [--temperature T]`
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { root, startEngineProcess, tito } from "../demo/processes.js";

const GROUPS = [
  { id: "sum-29-48", task: "Save the sum of 29 and 48 to a file.", rewards: [1, 0, 1, 0.5] },
  { id: "total-3-7", task: "What is the total of 3 and 7?", rewards: [0, 1, 0.25, null] },
  { id: "larger", task: "Which is larger, 91 or 64?", rewards: [1, 1, 0, 0] },
] as const;

const { values, positionals } = parseArgs({
  options: { temperature: { type: "string", default: "1" } },
  allowPositionals: true,
});
if (positionals.length !== 1) {
  console.error("usage: trials.ts DIR [--temperature T]");
  process.exit(64);
}
const out = resolve(positionals[0]!);
mkdirSync(out, { recursive: true });
const engine = await startEngineProcess({ seed: 7, logFile: join(out, "engine.ndjson") });
const turnRewards: string[] = [];
try {
  for (const group of GROUPS) {
    for (const [index, reward] of group.rewards.entries()) {
      const trial = `${group.id}__${index + 1}`;
      const dir = join(out, "trials", trial);
      mkdirSync(dir, { recursive: true });
      if (reward !== null) writeFileSync(join(dir, "reward.json"), `${JSON.stringify({ reward })}\n`);
      const run = await tito([
        ...["run", "--upstream", engine.url, "--model", "policy", "--out", join(dir, "tito")],
        ...["--trial-id", trial, "--run-id", trial, "--group-id", group.id, "--weight-version", `step-${index}`],
        ...[
          "--sampling",
          `temperature=${values.temperature}`,
          "--logprobs-mode",
          "processed",
          "--max-output-tokens",
          "64",
          "--max-context-tokens",
          "2048",
        ],
        ...["--", process.execPath, join(root, "scripts/trainers/branching-agent.mjs"), group.task],
      ]);
      if (run.exitCode !== 0) throw new Error(`${trial}: exit ${run.exitCode}\n${run.stderr}`);
      for (const turn of [0, 2])
        turnRewards.push(JSON.stringify({ trial_id: trial, turn, reward: (index + turn) / 4 }));
    }
  }
} finally {
  await engine.stop();
}
writeFileSync(join(out, "turn-rewards.jsonl"), `${turnRewards.join("\n")}\n`);
const excluded = { trial_id: "larger__4", reason: "the verifier was restarted" };
writeFileSync(join(out, "exclusions.jsonl"), `${JSON.stringify(excluded)}\n`);
console.log(join(out, "trials"));
