import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { ModelConfig } from "../../src/lm/config.js";
import { rngFrom } from "../../src/lm/index.js";
import type { Episode } from "../../src/lm/training/episode.js";
import { initialise } from "../../src/lm/training/parameters.js";
import { makeTokenizer, RECIPE, startTraining, type TrainingStep } from "../../src/lm/training/recipe.js";
import { Trainer } from "../../src/lm/training/trainer.js";
import { POLICY_DIRECTORY } from "./policy.js";

const SMALL: ModelConfig = {
  vocabSize: 20,
  hiddenSize: 16,
  intermediateSize: 12,
  layers: 2,
  heads: 2,
  headSize: 8,
  normEpsilon: 1e-5,
  ropeBase: 500,
  contextTokensMax: 128,
};

function smallBatch(lengths: readonly number[]): Episode[] {
  const rng = rngFrom("small batch");
  return lengths.map((length) => ({
    ids: Int32Array.from({ length }, () => Math.floor(rng() * SMALL.vocabSize)),
    sampled: Uint8Array.from({ length }, () => (rng() < 0.5 ? 1 : 0)),
  }));
}

describe("the hand-written gradients", () => {
  const trainer = new Trainer(SMALL, { episodes: 3, tokensMax: 70 });
  initialise(trainer.parameters, rngFrom("gradient check"));
  const batch = smallBatch([61, 5, 70]);
  trainer.lossAndGradients(batch);
  const gradients = trainer.parameters.all.map(({ gradient }) => gradient.data.slice());

  it.each(trainer.parameters.all.map(({ name }, index) => [name, index] as const))(
    "of %s agree with the slope of the loss along random directions",
    (_, index) => {
      const { value } = trainer.parameters.all[index]!;
      const rng = rngFrom("directions", index);
      const before = value.data.slice();
      const lossAt = (direction: Float32Array, distance: number) => {
        for (let i = 0; i < before.length; i++) value.data[i] = before[i]! + distance * direction[i]!;
        const loss = trainer.lossAndGradients(batch);
        value.data.set(before);
        return loss;
      };
      for (let trial = 0; trial < 3; trial++) {
        const direction = Float32Array.from(before, () => rng() - 0.5);
        const predicted = direction.reduce((sum, step, i) => sum + step * gradients[index]![i]!, 0);
        const measured = (lossAt(direction, 2e-3) - lossAt(direction, -2e-3)) / 4e-3;
        expect(Math.abs(measured - predicted)).toBeLessThan(2e-4 + 0.01 * Math.abs(predicted));
      }
    },
  );

  it("count sampled tokens only: a batch without any target token changed gives the same loss", () => {
    const loss = trainer.lossAndGradients(batch);
    const last = batch.map(({ ids, sampled }) => ({ ids: ids.slice(), sampled }));
    const unseen = last.find(({ sampled }) => sampled.at(-1) === 0)!;
    unseen.ids[unseen.ids.length - 1] = (unseen.ids.at(-1)! + 1) % SMALL.vocabSize;
    expect(trainer.lossAndGradients(last)).toBe(loss);
  });
});

it("retraining the first 50 steps gives the tokenizer byte for byte and each loss bit by bit", () => {
  const read = (name: string) => readFileSync(join(POLICY_DIRECTORY, name), "utf8");
  const log = JSON.parse(read("training-log.json")) as { recipe: unknown; steps: TrainingStep[] };
  expect(log.recipe).toEqual(RECIPE);
  const template = read("chat_template.jinja");
  const tokenizerJson = makeTokenizer(RECIPE, template);
  expect(tokenizerJson).toBe(read("tokenizer.json"));
  const steps: TrainingStep[] = [];
  for (const step of startTraining(RECIPE, template, tokenizerJson).steps()) {
    steps.push(step);
    if (steps.length === 50) break;
  }
  expect(steps).toEqual(log.steps.slice(0, 50));
  expect(steps.at(-1)!.loss).toBeLessThan(steps[0]!.loss);
}, 120_000);
