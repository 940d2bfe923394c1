/** Makes the start policy "habits": a short fine-tuning of the embedded policy on the same task solved in three ways. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Rng, rngFrom } from "../../../packages/reference-engine/src/lm/random.js";
import { parseTokenizer } from "../../../packages/reference-engine/src/lm/tokenizer.js";
import {
  conversationRenderer,
  drawConversation,
  drawSystemMessage,
  type Episode,
  tokenizeEpisode,
} from "../../../packages/reference-engine/src/lm/training/episode.js";
import { Optimizer } from "../../../packages/reference-engine/src/lm/training/optimizer.js";
import {
  POLICY_CONFIG,
  type TrainingRun,
  type TrainingStep,
} from "../../../packages/reference-engine/src/lm/training/recipe.js";
import { Trainer } from "../../../packages/reference-engine/src/lm/training/trainer.js";
import { loadParameters } from "../trainer/checkpoint.js";
import { HABITS, solveBy } from "./habit.js";
import { drawTask } from "./task.js";

/** All that decides the weights, besides the code and the base policy. */
export const HABITS_RECIPE = {
  seed: 1,
  /** Training stops after the step that reaches this many tokens. */
  tokens: 300_000,
  batchEpisodes: 4,
  episodeTokensMax: 200,
  learningRate: 1e-3,
  /** Share of episodes of the base policy's own tasks, so that it keeps its arithmetic. */
  rehearsal: 0.25,
} as const;

/** Starts from the weights in `baseDir`. Two runs give bit-identical losses and weights. */
export function startTuning(baseDir: string, recipe = HABITS_RECIPE): TrainingRun {
  const tokenizer = parseTokenizer(readFileSync(join(baseDir, "tokenizer.json"), "utf8"), "tokenizer.json");
  const render = conversationRenderer(readFileSync(join(baseDir, "chat_template.jinja"), "utf8"));
  const trainer = new Trainer(POLICY_CONFIG, { episodes: recipe.batchEpisodes, tokensMax: recipe.episodeTokensMax });
  loadParameters(trainer, join(baseDir, "model.safetensors"));
  const optimizer = new Optimizer(trainer.parameters, {
    learningRate: recipe.learningRate,
    warmupSteps: 20,
    decayFrom: 0.3,
    finalFraction: 0.02,
    beta1: 0.9,
    beta2: 0.98,
    epsilon: 1e-8,
    clipNorm: 1,
  });
  const rng = rngFrom("habits", recipe.seed);
  const draw = (): Episode => tokenizeEpisode(render(drawEpisode(rng, recipe.rehearsal), false), tokenizer);
  return {
    trainer,
    tokenizer,
    *steps(): Generator<TrainingStep> {
      for (let step = 1, tokens = 0; tokens < recipe.tokens; step++) {
        const batch = Array.from({ length: recipe.batchEpisodes }, draw);
        const loss = trainer.lossAndGradients(batch);
        optimizer.update(tokens / recipe.tokens);
        tokens += batch.reduce((sum, { ids }) => sum + ids.length, 0);
        yield { step, tokens, loss };
      }
    },
  };
}

/** Each habit is as likely as the others. */
function drawEpisode(rng: Rng, rehearsal: number) {
  if (rng() < rehearsal) return drawConversation(rng, true);
  const task = drawTask("train", rng);
  const habit = HABITS[Math.floor(rng() * HABITS.length)]!;
  return [drawSystemMessage(rng), { role: "user" as const, content: task.prompt }, ...solveBy(habit, task)];
}
