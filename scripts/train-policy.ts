/**
 * Trains the embedded engine's policy and writes the model directory.
 *
 *   node --import tsx scripts/train-policy.ts [--out fixtures/policy]     train, measure, write (minutes, one core)
 *   node --import tsx scripts/train-policy.ts --check [--steps 50]        retrain the first steps, compare each loss bit by bit with the log
 *   node --import tsx scripts/train-policy.ts --measure [--rollouts 64]   only measure the weights that are there
 *   node --import tsx scripts/train-policy.ts --habits [--check|--measure]  the same for the start policy of `npm run demo:rl`, in
 *                                                                         fixtures/habits: half a minute of fine-tuning, from fixtures/policy
 *
 * Needs a build of the workspace first (npm run build). The chat template in the directory is an input, everything else in it is output.
 */
import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { loadModel } from "../packages/reference-engine/src/lm/model.js";
import { conversationRenderer } from "../packages/reference-engine/src/lm/training/episode.js";
import { modelFiles } from "../packages/reference-engine/src/lm/training/model-files.js";
import {
  makeTokenizer,
  RECIPE,
  startTraining,
  type TrainingRun,
  type TrainingStep,
} from "../packages/reference-engine/src/lm/training/recipe.js";
import { measurePolicy, type TaskKindScore } from "../packages/reference-engine/src/lm/training/rollout.js";

import { formatHabits, measureHabits } from "./rl/habits/measure.js";
import { HABITS_RECIPE, startTuning } from "./rl/habits/tune.js";

const LOGGED_STEPS = 50;
const BASE_POLICY = "fixtures/policy";
const HABITS_POLICY = "fixtures/habits";

const { values: flags } = parseArgs({
  options: {
    out: { type: "string" },
    habits: { type: "boolean", default: false },
    check: { type: "boolean", default: false },
    measure: { type: "boolean", default: false },
    steps: { type: "string", default: String(LOGGED_STEPS) },
    rollouts: { type: "string", default: "64" },
  },
});
const directory = flags.out ?? (flags.habits ? HABITS_POLICY : BASE_POLICY);
const recipe = flags.habits ? HABITS_RECIPE : RECIPE;
const logEvery = flags.habits ? 50 : 200;
const templateDir = flags.habits ? BASE_POLICY : directory;
const template = await readFile(join(templateDir, "chat_template.jinja"), "utf8");
const tokenizerJson = async () =>
  flags.habits ? readFile(join(BASE_POLICY, "tokenizer.json"), "utf8") : makeTokenizer(RECIPE, template);

if (flags.check) await check(Number(flags.steps));
else if (flags.measure) await measure();
else await train();

function start(tokenizer: string): TrainingRun {
  return flags.habits ? startTuning(BASE_POLICY) : startTraining(RECIPE, template, tokenizer);
}

async function train(): Promise<void> {
  const startedAt = performance.now();
  const tokenizer = await tokenizerJson();
  const run = start(tokenizer);
  const log: TrainingStep[] = [];
  let sum = 0;
  for (const step of run.steps()) {
    sum += step.loss;
    if (step.step <= LOGGED_STEPS || step.step % logEvery === 0) log.push(step);
    if (step.step % logEvery === 0) {
      const seconds = (performance.now() - startedAt) / 1000;
      const rate = Math.round(step.tokens / seconds);
      console.log(
        `step ${step.step}  ${step.tokens} of ${recipe.tokens} tokens  loss ${(sum / logEvery).toFixed(4)}  ${rate} tokens/s`,
      );
      sum = 0;
    }
  }
  console.log(`trained in ${Math.round((performance.now() - startedAt) / 1000)} s`);
  await mkdir(directory, { recursive: true });
  for (const [name, content] of modelFiles(run, tokenizer, template)) await writeFile(join(directory, name), content);
  if (flags.habits) await copyFile(join(templateDir, "chat_template.jinja"), join(directory, "chat_template.jinja"));
  await writeFile(join(directory, "training-log.json"), `${JSON.stringify({ recipe, steps: log }, undefined, 1)}\n`);
  await measure();
}

async function check(steps: number): Promise<void> {
  const logged = JSON.parse(await readFile(join(directory, "training-log.json"), "utf8")) as { steps: TrainingStep[] };
  const tokenizer = await tokenizerJson();
  if (tokenizer !== (await readFile(join(directory, "tokenizer.json"), "utf8")))
    fail("the tokenizer differs from tokenizer.json");
  let compared = 0;
  for (const step of start(tokenizer).steps()) {
    const expected = logged.steps.find((entry) => entry.step === step.step);
    if (expected) {
      if (!Object.is(expected.loss, step.loss))
        fail(`step ${step.step}: loss ${step.loss}, the log says ${expected.loss}`);
      compared += 1;
    }
    if (step.step === steps) break;
  }
  console.log(`${compared} of the first ${steps} losses compared, all equal bit by bit; tokenizer equal`);
}

async function measure(): Promise<void> {
  const model = await loadModel(directory);
  const render = conversationRenderer(template);
  const rollouts = Number(flags.rollouts);
  if (flags.habits) {
    console.log(formatHabits(measureHabits(model, render, { rollouts, seed: "measure" })));
    return;
  }
  console.log("kind         solved   model calls   longest prompt (tokens)");
  for (const score of measurePolicy(model, render, { rollouts, temperature: 1 })) console.log(formatScore(score));
}

function formatScore({ kind, rollouts, solved, modelCalls, promptTokensMax }: TaskKindScore): string {
  const share = `${solved}/${rollouts} ${Math.round((100 * solved) / rollouts)}%`;
  return `${kind.padEnd(12)} ${share.padEnd(14)} ${(modelCalls / rollouts).toFixed(1).padEnd(9)} ${promptTokensMax}`;
}

function fail(problem: string): never {
  console.error(`retraining differs: ${problem}`);
  process.exit(1);
}
