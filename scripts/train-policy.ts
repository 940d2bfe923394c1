/**
 * Trains the embedded engine's policy and writes the model directory.
 *
 *   node --import tsx scripts/train-policy.ts [--out fixtures/policy]     train, measure, write (minutes, one core)
 *   node --import tsx scripts/train-policy.ts --check [--steps 50]        retrain the first steps, compare each loss bit by bit with the log
 *   node --import tsx scripts/train-policy.ts --measure [--rollouts 64]   only measure the weights that are there
 *
 * Needs a build of the workspace first (npm run build). The chat template in the directory is an input, everything else in it is output.
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { loadModel } from "../packages/reference-engine/src/lm/model.js";
import { conversationRenderer } from "../packages/reference-engine/src/lm/training/episode.js";
import { modelFiles } from "../packages/reference-engine/src/lm/training/model-files.js";
import {
  makeTokenizer,
  RECIPE,
  startTraining,
  type TrainingStep,
} from "../packages/reference-engine/src/lm/training/recipe.js";
import { measurePolicy, type TaskKindScore } from "../packages/reference-engine/src/lm/training/rollout.js";

const LOGGED_STEPS = 50;
const LOG_EVERY = 200;

const { values: flags } = parseArgs({
  options: {
    out: { type: "string", default: "fixtures/policy" },
    check: { type: "boolean", default: false },
    measure: { type: "boolean", default: false },
    steps: { type: "string", default: String(LOGGED_STEPS) },
    rollouts: { type: "string", default: "64" },
  },
});
const directory = flags.out;
const template = await readFile(join(directory, "chat_template.jinja"), "utf8");

if (flags.check) await check(Number(flags.steps));
else if (flags.measure) await measure();
else await train();

async function train(): Promise<void> {
  const startedAt = performance.now();
  const tokenizerJson = makeTokenizer(RECIPE, template);
  const run = startTraining(RECIPE, template, tokenizerJson);
  const log: TrainingStep[] = [];
  let sum = 0;
  for (const step of run.steps()) {
    sum += step.loss;
    if (step.step <= LOGGED_STEPS || step.step % LOG_EVERY === 0) log.push(step);
    if (step.step % LOG_EVERY === 0) {
      const seconds = (performance.now() - startedAt) / 1000;
      const rate = Math.round(step.tokens / seconds);
      console.log(
        `step ${step.step}  ${step.tokens} of ${RECIPE.tokens} tokens  loss ${(sum / LOG_EVERY).toFixed(4)}  ${rate} tokens/s`,
      );
      sum = 0;
    }
  }
  console.log(`trained in ${Math.round((performance.now() - startedAt) / 1000)} s`);
  await mkdir(directory, { recursive: true });
  for (const [name, content] of modelFiles(run, tokenizerJson, template))
    await writeFile(join(directory, name), content);
  await writeFile(
    join(directory, "training-log.json"),
    `${JSON.stringify({ recipe: RECIPE, steps: log }, undefined, 1)}\n`,
  );
  await measure();
}

async function check(steps: number): Promise<void> {
  const logged = JSON.parse(await readFile(join(directory, "training-log.json"), "utf8")) as { steps: TrainingStep[] };
  const tokenizerJson = makeTokenizer(RECIPE, template);
  if (tokenizerJson !== (await readFile(join(directory, "tokenizer.json"), "utf8")))
    fail("the tokenizer differs from tokenizer.json");
  let compared = 0;
  for (const step of startTraining(RECIPE, template, tokenizerJson).steps()) {
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
  const scores = measurePolicy(model, conversationRenderer(template), {
    rollouts: Number(flags.rollouts),
    temperature: 1,
  });
  console.log("kind         solved   model calls   longest prompt (tokens)");
  for (const score of scores) console.log(formatScore(score));
}

function formatScore({ kind, rollouts, solved, modelCalls, promptTokensMax }: TaskKindScore): string {
  const share = `${solved}/${rollouts} ${Math.round((100 * solved) / rollouts)}%`;
  return `${kind.padEnd(12)} ${share.padEnd(14)} ${(modelCalls / rollouts).toFixed(1).padEnd(9)} ${promptTokensMax}`;
}

function fail(problem: string): never {
  console.error(`retraining differs: ${problem}`);
  process.exit(1);
}
