/** What the demo says at its start, for each iteration, and at its end. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Flags } from "../flags.js";
import { HABITS } from "../habits/habit.js";
import type { IterationRow } from "../loop/iteration-row.js";
import type { ArmName } from "../loop/options.js";
import type { PooledArm } from "./pooled.js";
import { ARM_TITLES, percent } from "./table.js";

/** What runs here, and where the start policy comes from. */
export function openingWords(flags: Flags, out: string, startDir: string): string {
  const log = JSON.parse(readFileSync(join(startDir, "training-log.json"), "utf8")) as {
    recipe: { tokens: number; learningRate: number; seed: number; rehearsal: number };
  };
  const { tokens, learningRate, seed, rehearsal } = log.recipe;
  const { loop } = flags;
  const harness = { both: "Pi and an OpenAI-SDK tool loop in turns", pi: "Pi", "tool-loop": "an OpenAI-SDK tool loop" };
  return [
    `${harness[loop.harness]} → tito gateway → embedded engine → materialized samples → ${loop.trainer === "torch" ? "PyTorch" : "trainer"} → new weights. Kept in ${out}`,
    `Start policy "habits" (fixtures/habits): the embedded policy, fine-tuned on ${tokens} tokens (Adam ${learningRate}, seed ${seed}, ${percent(rehearsal)} % of its old tasks)`,
    'of "Save the sum in answer.txt: A B" solved in three ways, each as often: with the calculator, thinking aloud, guessing. So RL has something to choose.',
    "It was made for this demo by: node --import tsx scripts/train-policy.ts --habits",
    `GRPO: ${loop.tasks} tasks × ${loop.rolloutsPerTask} rollouts a step, one Adam step (rate ${loop.learningRate}, clip ${loop.clip}), ${loop.iterations} steps; sampling weights ${loop.stale} steps behind, tokens up to age ${loop.maxVersionAge} train.`,
    "",
    `  ${"time".padStart(7)}  ${"trained on".padEnd(18)}  step  solved   calc/think/guess  tokens  never sampled  recorded−trainer  own ratio   mean log π`,
  ].join("\n");
}

/** One line an iteration. */
export function rowLine(seconds: number, arm: ArmName, row: IterationRow): string {
  const never = row.tokensTrained === 0 ? 0 : row.tokensNeverSampled / row.tokensTrained;
  return [
    `  ${seconds.toFixed(1).padStart(6)}s`,
    ARM_TITLES[arm].padEnd(18),
    String(row.iteration).padStart(4),
    `${row.solved}/${row.rollouts}`.padStart(6),
    HABITS.map((habit) => String(row.habits[habit]))
      .join("/")
      .padStart(17),
    String(row.tokensTrained).padStart(6),
    `${percent(never)} %`.padStart(13),
    (row.recordedOffMax === null ? "–" : row.recordedOffMax.toExponential(1)).padStart(16),
    (row.ratioOffMax === 0 ? "1" : `1 ± ${row.ratioOffMax.toExponential(1)}`).padStart(11),
    (row.meanLogprob === null ? "nothing to train" : row.meanLogprob.toFixed(3)).padStart(11),
  ].join("  ");
}

/** What the table shows, in words that its own numbers decide. */
export function closingWords(arms: readonly PooledArm[], out: string, seconds: number): string {
  return [
    "never sampled there: tokens in the loss that the engine never sampled behind the prefix they are trained behind, counted against the engine's own log.",
    "own |ratio − 1|: what the trainer's importance ratio shows. Without recorded log probabilities it recomputes them, and the ratio is 1 whatever it trains on.",
    ...arms.flatMap(verdictOf),
    "",
    `Done in ${seconds.toFixed(0)} s: ${join(out, "curves.svg")}, table.md, results.json; rows of every step in seed-N/ARM/batches`,
  ].join("\n");
}

function verdictOf(arm: PooledArm): string[] {
  const never = arm.tokensTrained === 0 ? 0 : arm.tokensNeverSampled / arm.tokensTrained;
  switch (arm.arm) {
    case "tito":
      return arm.tokensNeverSampled === 0 ? ["tito: every trained token was sampled there."] : [];
    case "transcript":
      return never === 0
        ? []
        : [
            `transcript: ${percent(never)} % of its trained tokens were never sampled there, and its own ratio does not show it.`,
          ];
    case "careful":
      return [
        `careful transcript: on this template, with reasoning kept and arguments as objects, ${(Math.floor(1000 * (1 - never)) / 10).toFixed(1)} % of its tokens are the sampled ones. Another template, parser or harness may differ.`,
      ];
    default:
      return arm.arm satisfies never;
  }
}
