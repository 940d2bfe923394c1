import { describe, expect, it } from "vitest";
import { assertSample, fillArrays } from "../../src/build/arrays.js";
import { buildSamples } from "../../src/build/build.js";
import { coverageOf } from "../../src/build/coverage.js";
import { selectTurns } from "../../src/build/select.js";
import { loadPolicy, type PolicyFlags } from "../../src/recipe/policy.js";
import { type Call, evidenceOf } from "../trajectories.js";

function materializeCalls(calls: Call[], flags: PolicyFlags = {}, yaml: string | null = null) {
  const policy = loadPolicy(yaml, flags);
  const evidence = evidenceOf(calls);
  const verdicts = selectTurns(evidence, { policy: policy.select, newestVersion: 7 });
  const built = buildSamples(evidence, verdicts, policy.build);
  const coverage = coverageOf(evidence, built);
  const samples = built.samples.map((sample) => {
    const arrays = fillArrays(sample, false);
    assertSample(sample, arrays, "test");
    return {
      tokens: [...arrays.tokens],
      mask: [...arrays.loss_mask].join(""),
      logprobs: [...arrays.logprobs],
      spans: sample.spans.map((s) => `${s.start}-${s.end} ${s.kind} ${s.turn.turn} ${s.reason}`),
      segments: sample.segments,
    };
  });
  return { samples, coverage, outside: built.outside };
}

describe("building samples", () => {
  it("makes one sample of a segment: prompts and tool results masked, sampled tokens trained, spans over everything", () => {
    const { samples, coverage } = materializeCalls([
      { prompt: [1, 2, 3], sampled: [10, 11] },
      { prompt: [1, 2, 3, 10, 11, 4, 5], sampled: [12] },
    ]);
    expect(samples).toHaveLength(1);
    expect(samples[0]!.tokens).toEqual([1, 2, 3, 10, 11, 4, 5, 12]);
    expect(samples[0]!.mask).toBe("00011001");
    expect(samples[0]!.spans).toEqual([
      "0-3 prompt 0 prompt",
      "3-5 action 0 trained",
      "5-7 context 1 context",
      "7-8 action 1 trained",
    ]);
    expect(coverage).toEqual({ captured_tokens: 3, eligible_tokens: 3, trained_tokens: 3, masked: {} });
  });

  it("C6.43: trains a prefix that two branches share once, in the first", () => {
    const { samples, coverage } = materializeCalls([
      { prompt: [1], sampled: [10, 11] },
      { prompt: [1, 10, 11, 2], sampled: [12] },
      { prompt: [1, 10, 11, 3], sampled: [13] },
    ]);
    expect(samples.map((s) => s.mask)).toEqual(["01101", "00001"]);
    expect(samples[1]!.spans[1]).toBe("1-3 action 0 shared_prefix");
    expect(coverage.trained_tokens).toBe(4);
  });

  it("splits at every turn on request, and still trains each token once", () => {
    const { samples, coverage } = materializeCalls(
      [
        { prompt: [1], sampled: [10, 11] },
        { prompt: [1, 10, 11, 2], sampled: [12] },
      ],
      { split: "turn" },
    );
    expect(samples.map((s) => s.mask)).toEqual(["011", "00001"]);
    expect(coverage.trained_tokens).toBe(3);
  });

  it("ends a sample at the last turn that fits and counts the rest, never cutting inside a turn", () => {
    const { samples, coverage, outside } = materializeCalls(
      [
        { prompt: [1], sampled: [10, 11] },
        { prompt: [1, 10, 11, 2], sampled: [12, 13] },
      ],
      { maxSeqLen: 5 },
    );
    expect(samples.map((s) => s.tokens)).toEqual([[1, 10, 11]]);
    expect(coverage.masked).toEqual({ max_seq_len: 2 });
    expect(outside).toEqual([{ turn: 1, tokens: 2, reason: "max_seq_len" }]);
  });

  it("keeps a drifted segment apart by default, and joins it with its parent when few sampled tokens are lost", () => {
    const calls: Call[] = [
      { prompt: [1], sampled: [10, 11, 12] },
      { prompt: [1, 10, 11, 99, 2], sampled: [13] },
    ];
    const apart = materializeCalls(calls);
    expect(apart.samples.map((s) => s.mask)).toEqual(["0111", "000001"]);
    const joined = materializeCalls(calls, { realignMaxLostTokens: 1 });
    expect(joined.samples.map((s) => s.mask)).toEqual(["011001"]);
    expect(joined.samples[0]!.segments).toEqual([0, 1]);
    expect(joined.coverage).toEqual({
      captured_tokens: 4,
      eligible_tokens: 4,
      trained_tokens: 3,
      masked: { realign_overwritten: 1 },
    });
    expect(joined.outside).toEqual([{ turn: 0, tokens: 1, reason: "realign_overwritten" }]);
  });

  it("does not realign when more tokens are lost than allowed, or when none is kept", () => {
    const lost2: Call[] = [
      { prompt: [1], sampled: [10, 11, 12] },
      { prompt: [1, 10, 99, 2], sampled: [13] },
    ];
    expect(materializeCalls(lost2, { realignMaxLostTokens: 1 }).samples).toHaveLength(2);
    const none: Call[] = [
      { prompt: [1], sampled: [10] },
      { prompt: [1, 99, 2], sampled: [13] },
    ];
    expect(materializeCalls(none, { realignMaxLostTokens: 9 }).samples).toHaveLength(2);
  });

  it("C5.37: shows an aborted call's tokens masked, and its retry behind the same prompt", () => {
    const { samples, coverage } = materializeCalls([
      { prompt: [1], sampled: [10] },
      { prompt: [1, 10, 2], sampled: [66, 67], defects: ["aborted"], finish: "abort", delivery: "failed" },
      { prompt: [1, 10, 2], sampled: [12] },
    ]);
    expect(samples.map((s) => s.tokens)).toEqual([
      [1, 10, 2, 66, 67],
      [1, 10, 2, 12],
    ]);
    expect(samples.map((s) => s.mask)).toEqual(["01000", "0001"]);
    expect(coverage).toEqual({ captured_tokens: 4, eligible_tokens: 2, trained_tokens: 2, masked: { aborted: 2 } });
  });

  it("C5.35: shows a junction's own ids as seam, never trained", () => {
    const { samples } = materializeCalls([
      { prompt: [1], sampled: [10] },
      { prompt: [1, 10, 50, 2], sampled: [11], seam: 1 },
    ]);
    expect(samples[0]!.spans).toEqual([
      "0-1 prompt 0 prompt",
      "1-2 action 0 trained",
      "2-3 seam 1 seam",
      "3-4 context 1 context",
      "4-5 action 1 trained",
    ]);
  });
});
