import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { loadModel } from "../../../packages/reference-engine/src/lm/model.js";
import { rngFrom } from "../../../packages/reference-engine/src/lm/random.js";
import { loadCheckpoint, loadParameters, saveCheckpoint } from "../../rl/trainer/checkpoint.js";
import { clippedLoss } from "../../rl/trainer/clipped-loss.js";
import { GRPO_DEFAULTS, GrpoTrainer } from "../../rl/trainer/grpo-trainer.js";
import { type TrainingSample, tokenWeights } from "../../rl/trainer/training-sample.js";

const HABITS = resolve(import.meta.dirname, "../../../fixtures/habits");
const model = await loadModel(HABITS);
const dir = mkdtempSync(join(tmpdir(), "tito-grpo-"));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

/** Random token lines with random masks and advantages; old log probabilities are the start policy's, as its sampling would have recorded them. */
function randomSamples(count: number, seed: string): TrainingSample[] {
  const rng = rngFrom("samples", seed);
  return Array.from({ length: count }, () => {
    const length = 20 + Math.floor(rng() * 60);
    const tokens = Int32Array.from({ length }, () => Math.floor(rng() * 376));
    const mask = Uint8Array.from({ length }, (_, index) => (index > 0 && rng() < 0.4 ? 1 : 0));
    return {
      tokens,
      mask,
      weights: tokenWeights(mask, 1, count),
      advantages: new Float64Array(length).fill(rng() * 2 - 1),
      oldLogprobs: Float64Array.from(model.logprobs(tokens)),
    };
  });
}

function newTrainer(settings: Partial<typeof GRPO_DEFAULTS> = {}): GrpoTrainer {
  const grpo = new GrpoTrainer({ ...GRPO_DEFAULTS, ...settings });
  loadParameters(grpo.trainer, join(HABITS, "model.safetensors"));
  return grpo;
}

const valuesOf = (grpo: GrpoTrainer) => grpo.trainer.parameters.values.slice();
const largest = (a: Float32Array, b: Float32Array) => a.reduce((max, x, i) => Math.max(max, Math.abs(x - b[i]!)), 0);

describe("a step of the trainer", () => {
  const samples = randomSamples(7, "step");

  it("is bit-equal on the same samples and seed", () => {
    const [a, b] = [newTrainer(), newTrainer()];
    expect([a.step(samples), a.step(samples)]).toEqual([b.step(samples), b.step(samples)]);
    expect(valuesOf(a)).toEqual(valuesOf(b));
  });

  it("computes the log probabilities that the engine samples with: every ratio is 1", () => {
    const report = newTrainer().step(samples);
    expect(report.ratioOffMax).toBeLessThan(1e-3);
    expect(report.clippedTokens).toBe(0);
    expect(report.tokens).toBe(samples.reduce((sum, { mask }) => sum + mask.reduce((a, b) => a + b, 0), 0));
  });

  it("does not, when the recorded ones are shifted by one place: the ratios show it", () => {
    const shifted = samples.map((sample) => ({ ...sample, oldLogprobs: sample.oldLogprobs!.slice().fill(0, 0, 1) }));
    for (const { oldLogprobs } of shifted) oldLogprobs.copyWithin(1, 0);
    expect(newTrainer().step(shifted).ratioOffMax).toBeGreaterThan(1);
  });

  it("adds up the same gradient whatever the micro-batch, and in an order that the seed decides", () => {
    const gradients = (settings: Partial<typeof GRPO_DEFAULTS>) => {
      const grpo = newTrainer(settings);
      grpo.step(samples);
      return grpo.trainer.parameters.gradients.slice();
    };
    const whole = gradients({ microBatch: 4 });
    expect(largest(whole, gradients({ microBatch: 1 }))).toBeLessThan(1e-5);
    const other = gradients({ microBatch: 4, seed: 2 });
    expect(largest(whole, other)).toBeLessThan(1e-5);
    expect(whole).not.toEqual(other);
  });

  it("goes on from a checkpoint as if it had not stopped", () => {
    const straight = newTrainer();
    straight.step(samples);
    const checkpoint = join(dir, "step-1");
    saveCheckpoint(straight, checkpoint, HABITS);
    const resumed = newTrainer();
    loadCheckpoint(resumed, checkpoint);
    const more = randomSamples(5, "more");
    expect(resumed.step(more)).toEqual(straight.step(more));
    expect(valuesOf(resumed)).toEqual(valuesOf(straight));
  });

  it("changes nothing when no token trains", () => {
    const grpo = newTrainer();
    const before = valuesOf(grpo);
    expect(grpo.step(samples.map((sample) => ({ ...sample, mask: new Uint8Array(sample.mask.length) })))).toMatchObject(
      {
        loss: null,
        tokens: 0,
      },
    );
    expect(valuesOf(grpo)).toEqual(before);
  });

  it("has gradients that agree with the slope of the clipped loss, tokens outside the clip included", () => {
    const off = randomSamples(3, "slope").map((sample) => {
      const rng = rngFrom("off", sample.tokens);
      return { ...sample, oldLogprobs: sample.oldLogprobs!.map((value) => value + 0.5 * (rng() - 0.5)) };
    });
    const grpo = newTrainer({ learningRate: 1e-30 });
    const { values, gradients } = grpo.trainer.parameters;
    const before = values.slice();
    const lossAt = (direction: Float32Array, distance: number) => {
      for (let i = 0; i < values.length; i++) values[i] = before[i]! + distance * direction[i]!;
      return grpo.step(off).loss!;
    };
    expect(grpo.step(off).clippedTokens).toBeGreaterThan(0);
    const slopes = gradients.slice();
    const rng = rngFrom("directions of the clipped loss");
    for (let trial = 0; trial < 3; trial++) {
      const direction = Float32Array.from(slopes, (slope) => Math.sign(slope) * rng());
      const predicted = direction.reduce((sum, step, i) => sum + step * slopes[i]!, 0);
      const measured = (lossAt(direction, 2e-5) - lossAt(direction, -2e-5)) / 4e-5;
      expect(Math.abs(measured - predicted)).toBeLessThan(1e-3 + 0.05 * Math.abs(predicted));
    }
  });
});

describe("the clipped loss of a token", () => {
  const of = (ratio: number, advantage: number) =>
    clippedLoss({ logprob: Math.log(ratio), oldLogprob: 0, advantage, weight: 0.5, clip: 0.2 });

  it.each([
    [1, 2, -1, -1, false],
    [1.1, 2, -1.1, -1.1, false],
    [1.5, 2, -1.2, 0, true],
    [0.5, 2, -0.5, -0.5, false],
    [1.5, -2, 1.5, 1.5, false],
    [0.5, -2, 0.8, 0, true],
    [1, 0, 0, 0, false],
  ])("ratio %d, advantage %d: loss %d, slope %d", (ratio, advantage, loss, slope, clipped) => {
    const got = of(ratio, advantage);
    expect(got.loss).toBeCloseTo(loss, 10);
    expect(got.slope).toBeCloseTo(slope, 10);
    expect(got.clipped).toBe(clipped);
  });
});

describe("token weights", () => {
  it("sum to a sample's share of the batch, whatever its length", () => {
    const sum = (mask: number[], weight: number) =>
      tokenWeights(Uint8Array.from(mask), weight, 4).reduce((total, one) => total + one, 0);
    expect([sum([0, 1, 1], 1), sum([0, 1, 0, 1, 1, 1, 1], 1), sum([0, 1], 0.5)]).toEqual([0.25, 0.25, 0.125]);
  });
});
