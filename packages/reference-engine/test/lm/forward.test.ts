import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { loadModel, logSoftmaxAt, rngFrom } from "../../src/lm/index.js";
import { golden, POLICY_DIRECTORY } from "./policy.js";

const model = await loadModel(POLICY_DIRECTORY);

function randomIds(length: number, seed: string): Int32Array {
  const rng = rngFrom(seed);
  return Int32Array.from({ length }, () => Math.floor(rng() * model.tokenizer.vocabSize));
}

describe("prefill, decode and scoring", () => {
  it("give the same logits bit by bit, wherever the sequence is cut", () => {
    const ids = randomIds(203, "cuts");
    const whole: Float32Array[] = [];
    model.scan(ids, (_, logits) => whole.push(logits.slice()));
    const stepping = model.newSession();
    for (const [position, id] of ids.entries()) expect(stepping.step(id)).toEqual(whole[position]);
    for (const cut of [1, 3, 63, 64, 65, 130, 202]) {
      const session = model.newSession();
      expect(session.prefill(ids.subarray(0, cut))).toEqual(whole[cut - 1]);
      expect(session.prefill(ids.subarray(cut))).toEqual(whole.at(-1));
    }
  });

  it("score each sampled token exactly as decoding did", () => {
    for (const temperature of [0.5, 1, 1.7]) {
      const ids = randomIds(90, `score ${temperature}`);
      const scored = model.logprobs(ids, temperature);
      const session = model.newSession();
      let logits = session.step(ids[0]!);
      for (let i = 1; i < ids.length; i++) {
        expect(scored[i]).toBe(logSoftmaxAt(logits, ids[i]!, temperature));
        logits = session.step(ids[i]!);
      }
      expect(scored[0]).toBeNaN();
    }
  });

  it("are not changed by other sessions that run between the steps, nor by a fork", () => {
    const ids = randomIds(40, "interleaved");
    const alone = model.newSession();
    alone.prefill(ids);
    const first = model.newSession();
    const other = model.newSession();
    first.prefill(ids.subarray(0, 20));
    other.prefill(randomIds(77, "other"));
    const fork = first.fork();
    fork.step(5);
    expect(first.prefill(ids.subarray(20))).toEqual(model.newSession().prefill(ids));
    expect(first.step(9)).toEqual(alone.step(9));
    expect(fork.length).toBe(21);
  });

  it("hold up to the whole context, and say so beyond it", () => {
    const { contextTokensMax } = model.config;
    const session = model.newSession();
    expect(session.prefill(randomIds(contextTokensMax, "long")).every(Number.isFinite)).toBe(true);
    expect(() => session.step(1)).toThrow(/context/);
    expect(contextTokensMax).toBeGreaterThanOrEqual(2048);
  });

  it("refuse ids outside the vocabulary and empty prompts", () => {
    expect(() => model.newSession().step(model.tokenizer.vocabSize)).toThrow(RangeError);
    expect(() => model.newSession().step(-1)).toThrow(RangeError);
    expect(() => model.newSession().prefill([])).toThrow(RangeError);
  });
});

// The goldens are float64. A token a million times less likely than the best shows most of the rounding; transformers itself in float32 is off by 6e-5 there.
it("log probabilities equal those of transformers' LlamaForCausalLM to 3e-5, those of likely tokens to 1e-5", () => {
  const cases = JSON.parse(readFileSync(golden("logprob-goldens.json"), "utf8")) as {
    ids: number[];
    logprobs: number[];
  }[];
  let [largest, largestLikely] = [0, 0];
  for (const { ids, logprobs } of cases) {
    const ours = model.logprobs(ids);
    for (const [i, expected] of logprobs.entries()) {
      const difference = Math.abs(ours[i + 1]! - expected);
      largest = Math.max(largest, difference);
      if (expected > Math.log(0.01)) largestLikely = Math.max(largestLikely, difference);
    }
  }
  expect(cases.length).toBeGreaterThanOrEqual(6);
  expect(largest).toBeLessThan(3e-5);
  expect(largestLikely).toBeLessThan(1e-5);
});

it("emitted log probabilities survive a round trip through float32, and a row of them sums to 1", () => {
  const logits = model.newSession().prefill(randomIds(12, "float32"));
  const all = Array.from(logits, (_, id) => logSoftmaxAt(logits, id));
  for (const value of all) expect(Math.fround(value)).toBe(value);
  expect(all.reduce((sum, value) => sum + Math.exp(value), 0)).toBeCloseTo(1, 5);
});
