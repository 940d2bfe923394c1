import { describe, expect, it } from "vitest";
import { logSoftmax, NEUTRAL_SAMPLING, rngFrom, sampleToken } from "../../src/lm/index.js";

const LOGITS = Float32Array.of(2, 1, 0.5, 0, -1, -1, 3, -4);

function frequencies(draws: number, settings: Partial<typeof NEUTRAL_SAMPLING>, seed: string): number[] {
  const rng = rngFrom(seed);
  const counts = new Array<number>(LOGITS.length).fill(0);
  for (let i = 0; i < draws; i++) counts[sampleToken(LOGITS, { ...NEUTRAL_SAMPLING, ...settings }, rng).id]! += 1;
  return counts;
}

describe("sampleToken", () => {
  it.each([0.7, 1, 1.6])("draws from softmax(logits / %f): chi-square over 20,000 draws", (temperature) => {
    const draws = 20_000;
    const expected = logSoftmax(LOGITS, temperature).map(Math.exp);
    const observed = frequencies(draws, { temperature }, "chi-square");
    const chiSquare = observed.reduce(
      (sum, count, id) => sum + (count - draws * expected[id]!) ** 2 / (draws * expected[id]!),
      0,
    );
    // 7 degrees of freedom: 24.3 is passed by chance once in a thousand seeds; the seed is fixed.
    expect(chiSquare).toBeLessThan(24.3);
    const wrong = logSoftmax(LOGITS, temperature * 1.2).map(Math.exp);
    const missed = observed.reduce(
      (sum, count, id) => sum + (count - draws * wrong[id]!) ** 2 / (draws * wrong[id]!),
      0,
    );
    expect(missed).toBeGreaterThan(24.3);
  });

  it("reports the raw log probability at temperature 1 whatever it drew with, and the one it drew with beside it", () => {
    for (const temperature of [0.5, 1, 2]) {
      const { id, logprob, processedLogprob } = sampleToken(
        LOGITS,
        { ...NEUTRAL_SAMPLING, temperature },
        rngFrom("raw", temperature),
      );
      expect(logprob).toBe(logSoftmax(LOGITS)[id]);
      expect(processedLogprob).toBe(logSoftmax(LOGITS, temperature)[id]);
      if (temperature !== 1) expect(processedLogprob).not.toBe(logprob);
    }
  });

  it("is greedy at temperature 0 and draws no random number then", () => {
    const never = () => {
      throw new Error("drawn");
    };
    expect(sampleToken(LOGITS, { ...NEUTRAL_SAMPLING, temperature: 0 }, never).id).toBe(6);
  });

  it("keeps only the tokens that top-k, top-p and min-p allow, and renormalises over them", () => {
    const kept = (settings: Partial<typeof NEUTRAL_SAMPLING>) =>
      frequencies(4000, settings, "filters").flatMap((count, id) => (count > 0 ? [id] : []));
    expect(kept({ topK: 2 })).toEqual([0, 6]);
    expect(kept({ topP: 0.1 })).toEqual([6]);
    expect(kept({ topP: 0.8 })).toEqual([0, 6]);
    expect(kept({ minP: 0.2 })).toEqual([0, 6]);
    const { processedLogprob, id } = sampleToken(LOGITS, { ...NEUTRAL_SAMPLING, topK: 2 }, rngFrom("two"));
    const pair = Math.exp(2) + Math.exp(3);
    expect(processedLogprob).toBeCloseTo(Math.log(Math.exp(LOGITS[id]!) / pair), 6);
  });

  it("penalties move the drawn distribution and leave the raw log probability alone", () => {
    const history = { promptIds: [0], sampledIds: [6, 6] };
    const greedy = (settings: Partial<typeof NEUTRAL_SAMPLING>) =>
      sampleToken(LOGITS, { ...NEUTRAL_SAMPLING, temperature: 0, ...settings }, rngFrom(""), history);
    expect(greedy({ presencePenalty: 1.5 }).id).toBe(0);
    expect(greedy({ frequencyPenalty: 0.6 }).id).toBe(0);
    expect(greedy({ repetitionPenalty: 4 }).id).toBe(1);
    expect(greedy({ repetitionPenalty: 4 }).logprob).toBe(logSoftmax(LOGITS)[1]);
  });
});

describe("rngFrom", () => {
  it("repeats for equal parts and differs for any other", () => {
    const stream = (...parts: (string | number | Int32Array)[]) => {
      const rng = rngFrom(...parts);
      return [rng(), rng(), rng()];
    };
    expect(stream("a", 1, Int32Array.of(1, 2))).toEqual(stream("a", 1, Int32Array.of(1, 2)));
    const others = [
      stream("a", "1", Int32Array.of(1, 2)),
      stream("a", 1, Int32Array.of(2, 1)),
      stream("a1", Int32Array.of(1, 2)),
    ];
    for (const other of others) expect(other).not.toEqual(stream("a", 1, Int32Array.of(1, 2)));
  });

  it("fills [0, 1) evenly", () => {
    const rng = rngFrom("even");
    const bins = new Array<number>(16).fill(0);
    for (let i = 0; i < 32_000; i++) bins[Math.floor(rng() * 16)]! += 1;
    for (const count of bins) expect(Math.abs(count - 2000)).toBeLessThan(200);
  });
});
