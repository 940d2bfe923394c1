/** Reports of other projects' users that the materializer must never repeat; the rest stand beside the stage that they are about. */
import { describe, expect, it } from "vitest";
import { fillArrays } from "../src/build/arrays.js";
import { buildSamples } from "../src/build/build.js";
import { coverageOf } from "../src/build/coverage.js";
import { selectTurns } from "../src/build/select.js";
import { loadPolicy, type PolicyFlags } from "../src/recipe/policy.js";
import { type Call, evidenceOf } from "./trajectories.js";

function samplesOf(calls: Call[], flags: PolicyFlags = {}) {
  const policy = loadPolicy(null, flags);
  const evidence = evidenceOf(calls);
  const built = buildSamples(
    evidence,
    selectTurns(evidence, { policy: policy.select, newestVersion: null }),
    policy.build,
  );
  const samples = built.samples.map((planned) => ({ planned, ...fillArrays(planned, false) }));
  return { samples, coverage: coverageOf(evidence, built) };
}

describe("reports of other projects", () => {
  it("C1.1: ids and logprobs come from one record; a shorter list of logprobs refuses the turn and pads nothing", () => {
    const { samples, coverage } = samplesOf([{ prompt: [1], sampled: [10, 11, 12], logprobs: [-0.5, -0.25] }]);
    expect(coverage.masked).toEqual({ logprob_missing: 3 });
    expect([...samples[0]!.loss_mask]).toEqual([0, 0, 0, 0]);
  });

  it("C1.2: a rollout in which nothing trains is written and counted, with weight 0 and its reasons", () => {
    const { samples, coverage } = samplesOf([{ prompt: [1], sampled: [10], delivery: "failed" }]);
    expect(samples).toHaveLength(1);
    expect(samples[0]!.planned.trained_tokens).toBe(0);
    expect(coverage).toMatchObject({ trained_tokens: 0, masked: { undelivered: 1 } });
  });

  it("C4.29: mask, logprobs and tokens are aligned to the token, the first and the last sampled one included", () => {
    const { samples } = samplesOf([
      { prompt: [1, 2], sampled: [10, 11], logprobs: [-0.5, -0.25] },
      { prompt: [1, 2, 10, 11, 3], sampled: [12], logprobs: [-0.75] },
    ]);
    expect([...samples[0]!.tokens]).toEqual([1, 2, 10, 11, 3, 12]);
    expect([...samples[0]!.loss_mask]).toEqual([0, 0, 1, 1, 0, 1]);
    expect([...samples[0]!.logprobs]).toEqual([0, 0, -0.5, -0.25, 0, -0.75]);
  });

  it("C4.31: after the harness rewrote its history nothing is scored again or filled with zeros: the rest is a new sample", () => {
    const calls: Call[] = [
      { prompt: [1], sampled: [10, 11], logprobs: [-0.5, -0.25] },
      { prompt: [1, 10, 99, 2], sampled: [12], logprobs: [-0.75] },
    ];
    const { samples } = samplesOf(calls);
    expect(samples.map((each) => [...each.loss_mask].join(""))).toEqual(["011", "00001"]);
    for (const { logprobs, loss_mask } of samples) {
      expect([...logprobs].filter((value, i) => loss_mask[i] === 1 && value === 0)).toEqual([]);
    }
    expect([...samples[1]!.logprobs]).toEqual([0, -0.5, 0, 0, -0.75]);
  });

  it("C6.45, C6.47: a compaction or a summary starts a segment and never fails or drops what was before it", () => {
    const { samples, coverage } = samplesOf([
      { prompt: [1, 2], sampled: [10] },
      { prompt: [1, 2, 10, 3], sampled: [11], lane: "compaction" },
      { prompt: [1, 50, 11], sampled: [12] },
      { prompt: [1, 50, 11, 12, 4], sampled: [13] },
    ]);
    expect(samples.map((each) => each.planned.trained_tokens)).toEqual([2, 2]);
    expect(coverage).toMatchObject({ captured_tokens: 4, trained_tokens: 4 });
  });

  it("C6.43: a sample a turn does not count a prefix again: each token trains once however many samples show it", () => {
    const calls: Call[] = Array.from({ length: 6 }, (_, i) => ({
      prompt: [1, ...Array.from({ length: i }, (_, k) => [10 + k, 50]).flat()],
      sampled: [10 + i],
    }));
    const { samples, coverage } = samplesOf(calls, { split: "turn" });
    expect(samples).toHaveLength(6);
    expect(samples.map((each) => each.loss_mask.reduce((a, b) => a + b, 0))).toEqual([1, 1, 1, 1, 1, 1]);
    expect(coverage.trained_tokens).toBe(6);
  });

  it("C10.75: a turn that two versions sampled is one turn with two spans, and both are told", () => {
    const versions = [
      { version: "3", start: 0, end: 1 },
      { version: "4", start: 1, end: 2 },
    ];
    const evidence = evidenceOf([{ prompt: [1], sampled: [10, 11], versions }]);
    const policy = loadPolicy(null, { maxVersionAge: 0 });
    const [ranges] = selectTurns(evidence, { policy: policy.select, newestVersion: 4 });
    expect(ranges).toEqual([
      { start: 0, end: 1, reason: "stale_version" },
      { start: 1, end: 2, reason: null },
    ]);
  });
});
