import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { assertSample, fillArrays } from "../src/build/arrays.js";
import { buildSamples } from "../src/build/build.js";
import { coverageOf } from "../src/build/coverage.js";
import { selectTurns } from "../src/build/select.js";
import { sampleWeight } from "../src/credit/credit.js";
import { loadPolicy, type PolicyFlags } from "../src/recipe/policy.js";
import { callsOf, flags, step } from "./random-calls.js";
import { type Call, digestOf, evidenceOf } from "./trajectories.js";

const yaml = fc.constantFrom(
  null,
  "select: {lanes: {auxiliary: train, sub_agent: mask}, logprob_missing: token}",
  "select: {undelivered: train, delivery_unknown: train, retry_orphan: train, logprob_not_behaviour: train}",
);

function make(calls: Call[], given: PolicyFlags, text: string | null) {
  const policy = loadPolicy(text, given);
  const evidence = evidenceOf(calls);
  const verdicts = selectTurns(evidence, { policy: policy.select, newestVersion: 7 });
  const built = buildSamples(evidence, verdicts, policy.build);
  return { policy, evidence, built, coverage: coverageOf(evidence, built) };
}

const RUNS = { numRuns: 150 };

describe("random trajectories through random policies", () => {
  it("account for every captured token exactly once, train none that was not sampled there, and cut only at turn ends", () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 14 }), flags, yaml, (steps, given, text) => {
        const calls = callsOf(steps);
        const { policy, built, coverage } = make(calls, given, text);
        const captured = calls.reduce((sum, call) => sum + call.sampled.length, 0);
        expect(coverage.captured_tokens).toBe(captured);
        // An independent account: which (turn, index) trains where, straight from the arrays.
        const owners = new Map<string, number>();
        for (const [index, sample] of built.samples.entries()) {
          const arrays = fillArrays(sample, false);
          assertSample(sample, arrays, "property");
          if (policy.build.max_seq_len !== null) expect(sample.length).toBeLessThanOrEqual(policy.build.max_seq_len);
          const lastSpan = sample.spans.at(-1)!;
          expect(lastSpan.kind).toBe("action");
          for (const span of sample.spans) {
            for (let i = span.start; i < span.end; i += 1) {
              expect(arrays.loss_mask[i]).toBe(span.reason === "trained" ? 1 : 0);
              if (arrays.loss_mask[i] === 0) continue;
              const call = calls[span.turn.turn]!;
              const at = span.from + i - span.start;
              expect(arrays.tokens[i]).toBe(call.sampled[at]);
              const prefix = [...arrays.tokens.subarray(0, i - at)];
              expect(digestOf(prefix)).toEqual(digestOf(call.prompt));
              const key = `${span.turn.turn}/${at}`;
              expect(owners.has(key)).toBe(false);
              owners.set(key, index);
            }
          }
        }
        expect(owners.size).toBe(coverage.trained_tokens);
      }),
      RUNS,
    );
  });

  it("keep a rollout's weight whatever the splitting", () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 12 }), flags, yaml, (steps, given, text) => {
        const { built, coverage } = make(callsOf(steps), given, text);
        const weights = built.samples.map((s) => sampleWeight(1, s.trained_tokens, coverage.trained_tokens));
        const sum = weights.reduce((a, b) => a + b, 0);
        expect(sum).toBeCloseTo(coverage.trained_tokens > 0 ? 1 : 0, 12);
      }),
      RUNS,
    );
  });

  it("train the same tokens whether split by turn or not, when nothing is cut or realigned", () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 12 }), yaml, (steps, text) => {
        const calls = callsOf(steps);
        const bySegment = make(calls, { split: "segment" }, text).coverage;
        const byTurn = make(calls, { split: "turn" }, text).coverage;
        expect(byTurn).toEqual(bySegment);
      }),
      RUNS,
    );
  });

  it("lose no more than the allowed tokens per realignment, and only as realign_overwritten", () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 12 }), fc.integer({ min: 1, max: 4 }), (steps, bound) => {
        const calls = callsOf(steps);
        const plain = make(calls, {}, null);
        const joined = make(calls, { realignMaxLostTokens: bound }, null);
        const saved = plain.built.samples.length - joined.built.samples.length;
        const lost = joined.built.outside.reduce((sum, each) => sum + each.tokens, 0);
        expect(saved).toBeGreaterThanOrEqual(0);
        expect(lost).toBeLessThanOrEqual(saved * bound);
        expect(
          joined.coverage.trained_tokens + (joined.coverage.masked.realign_overwritten ?? 0),
        ).toBeGreaterThanOrEqual(plain.coverage.trained_tokens - lost);
        if (saved === 0) expect(joined.coverage).toEqual(plain.coverage);
      }),
      RUNS,
    );
  });
});
