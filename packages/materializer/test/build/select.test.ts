import { describe, expect, it } from "vitest";
import { buildSamples } from "../../src/build/build.js";
import { coverageOf } from "../../src/build/coverage.js";
import { selectTurns } from "../../src/build/select.js";
import { versionNumbers } from "../../src/read/versions.js";
import { loadPolicy } from "../../src/recipe/policy.js";
import { type Call, evidenceOf } from "../trajectories.js";

const OK: Call = { prompt: [1], sampled: [10, 11] };

function reasonsOf(calls: Call[], yaml: string | null = null, newestVersion: number | null = null): string[] {
  const policy = loadPolicy(yaml);
  const verdicts = selectTurns(evidenceOf(calls), { policy: policy.select, newestVersion });
  return verdicts.map((ranges) => ranges.map((range) => range.reason ?? "trained").join("+"));
}

function coverage(calls: Call[], yaml: string | null = null) {
  const policy = loadPolicy(yaml);
  const evidence = evidenceOf(calls);
  const verdicts = selectTurns(evidence, { policy: policy.select, newestVersion: null });
  return coverageOf(evidence, buildSamples(evidence, verdicts, policy.build));
}

describe("selecting turns: logprobs", () => {
  it("C4.27: a logprob that is null or not finite masks its turn with a reason, the rollout goes on", () => {
    const calls = [
      { ...OK, logprobs: [-0.5, null] },
      { prompt: [1, 10, 11, 2], sampled: [12] },
    ];
    expect(reasonsOf(calls)).toEqual(["logprob_missing", "trained"]);
    expect(coverage(calls)).toMatchObject({ captured_tokens: 3, trained_tokens: 1, masked: { logprob_missing: 2 } });
  });

  it("masks only the tokens without a value when the policy says so", () => {
    expect(reasonsOf([{ ...OK, logprobs: [-0.5, null] }], "select: {logprob_missing: token}")).toEqual([
      "trained+logprob_missing",
    ]);
    expect(reasonsOf([{ ...OK, logprobs: null }], "select: {logprob_missing: token}")).toEqual(["logprob_missing"]);
  });

  it("C4.30: ids and logprobs that disagree in number never train and are never silent", () => {
    expect(reasonsOf([{ ...OK, logprobs: null, defects: ["ids_logprobs_disagree"] }])).toEqual(["capture_damage"]);
  });

  it("raw values train only when nothing reshaped the distribution; processed ones always; constrained decoding never", () => {
    const hot = { temperature: 0.6 };
    expect(reasonsOf([{ ...OK, sampling: hot, mode: "raw" }])).toEqual(["logprob_not_behaviour"]);
    expect(reasonsOf([{ ...OK, sampling: hot, mode: "unknown" }])).toEqual(["logprob_not_behaviour"]);
    expect(reasonsOf([{ ...OK, sampling: hot, mode: "processed" }])).toEqual(["trained"]);
    for (const sampling of [
      { top_p: 0.9 },
      { top_k: 20 },
      { min_p: 0.1 },
      { repetition_penalty: 1.1 },
      { presence_penalty: 0.5 },
    ]) {
      expect(reasonsOf([{ ...OK, sampling, mode: "raw" }])).toEqual(["logprob_not_behaviour"]);
    }
    for (const sampling of [
      { response_format: { type: "json_object" } },
      { tool_choice: "required" },
      { logit_bias: { 5: -100 } },
    ]) {
      expect(reasonsOf([{ ...OK, sampling, mode: "processed" }])).toEqual(["logprob_not_behaviour"]);
    }
    const neutral = {
      temperature: 1,
      top_p: 1,
      top_k: -1,
      min_p: 0,
      repetition_penalty: 1,
      tool_choice: "auto",
      logit_bias: {},
    };
    expect(reasonsOf([{ ...OK, sampling: neutral, mode: "raw" }])).toEqual(["trained"]);
    expect(reasonsOf([{ ...OK, sampling: hot, mode: "raw" }], "select: {logprob_not_behaviour: train}")).toEqual([
      "trained",
    ]);
  });
});

describe("selecting turns: boundaries", () => {
  it("C5.37: a partial answer of an aborted call is kept, counted and not trained", () => {
    for (const defect of ["aborted", "aborted_by_seal", "stream_cut", "engine_error"]) {
      expect(reasonsOf([{ ...OK, defects: [defect] }])).toEqual(["aborted"]);
    }
    expect(reasonsOf([{ ...OK, finish: "abort" }])).toEqual(["aborted"]);
    expect(coverage([{ ...OK, defects: ["aborted"] }])).toMatchObject({ captured_tokens: 2, eligible_tokens: 0 });
  });

  it("C7.54: what was sampled after the harness hung up is client_gone", () => {
    expect(reasonsOf([{ ...OK, defects: ["client_gone"], finish: "abort", delivery: "failed" }])).toEqual([
      "client_gone",
    ]);
  });

  it("C5.34: a prompt count that disagrees with the engine's usage makes the turn damage, whatever else it is", () => {
    expect(reasonsOf([{ ...OK, defects: ["prompt_count_disagrees", "aborted"] }])).toEqual(["capture_damage"]);
  });

  it("C5.35: the sampled end-of-turn token trains; one that the template adds is context", () => {
    const calls = [
      { prompt: [1], sampled: [10, 99] },
      { prompt: [1, 10, 99, 98, 2], sampled: [11] },
    ];
    const evidence = evidenceOf(calls);
    const policy = loadPolicy(null);
    const built = buildSamples(
      evidence,
      selectTurns(evidence, { policy: policy.select, newestVersion: null }),
      policy.build,
    );
    expect(built.samples[0]!.spans.map((s) => [s.start, s.end, s.kind, s.reason])).toEqual([
      [0, 1, "prompt", "prompt"],
      [1, 3, "action", "trained"],
      [3, 5, "context", "context"],
      [5, 6, "action", "trained"],
    ]);
  });

  it("length and malformed turns train by default, and each is a policy key", () => {
    const calls: Call[] = [
      { ...OK, finish: "length" },
      { prompt: [5], sampled: [6], malformed: true },
    ];
    expect(reasonsOf(calls)).toEqual(["trained", "trained"]);
    expect(reasonsOf(calls, "select: {length: mask, malformed: mask}")).toEqual(["length", "malformed"]);
  });
});

describe("selecting turns: branches, sub-agents, auxiliary calls", () => {
  it("C6.40, C6.41: sub-agents and compaction train in samples of their own, auxiliary calls do not", () => {
    const calls: Call[] = [
      { prompt: [1], sampled: [10] },
      { prompt: [20], sampled: [21], lane: "sub:a" },
      { prompt: [1, 10, 2], sampled: [11] },
      { prompt: [30], sampled: [31], lane: "aux:title" },
      { prompt: [20, 21, 3], sampled: [22], lane: "sub:a" },
      { prompt: [1, 10, 2, 11, 40], sampled: [41], lane: "compaction" },
    ];
    expect(reasonsOf(calls)).toEqual(["trained", "trained", "trained", "auxiliary", "trained", "trained"]);
    const evidence = evidenceOf(calls);
    expect(evidence.segments.map((segment) => segment.turns.map((turn) => turn.turn))).toEqual([
      [0, 2, 5],
      [1, 4],
      [3],
    ]);
    expect(
      reasonsOf(calls, "select: {lanes: {sub_agent: mask, compaction: mask, main: mask, auxiliary: train}}"),
    ).toEqual(["main_lane", "sub_agent", "main_lane", "trained", "sub_agent", "compaction"]);
    expect(coverage(calls)).toMatchObject({
      captured_tokens: 6,
      eligible_tokens: 5,
      trained_tokens: 5,
      masked: { auxiliary: 1 },
    });
  });

  it("C6.46: a compaction's summary is an ordinary turn that trains, and what follows starts a sample", () => {
    const calls: Call[] = [
      { prompt: [1, 2], sampled: [10] },
      { prompt: [1, 2, 10, 3], sampled: [50, 51], lane: "compaction" },
      { prompt: [1, 2, 50, 51], sampled: [12] },
    ];
    const evidence = evidenceOf(calls);
    const policy = loadPolicy(null);
    const built = buildSamples(
      evidence,
      selectTurns(evidence, { policy: policy.select, newestVersion: null }),
      policy.build,
    );
    expect(built.samples.map((sample) => sample.trained_tokens)).toEqual([3, 1]);
  });
});

describe("selecting turns: delivery and retries", () => {
  it("C7.52: the last call trains when it was delivered; unknown and failed are masked, each under its reason", () => {
    expect(reasonsOf([OK])).toEqual(["trained"]);
    expect(reasonsOf([{ ...OK, delivery: "unknown" }])).toEqual(["delivery_unknown"]);
    expect(reasonsOf([{ ...OK, delivery: "failed" }])).toEqual(["undelivered"]);
    expect(reasonsOf([{ ...OK, delivery: "failed" }], "select: {undelivered: train}")).toEqual(["trained"]);
  });

  it("a later prompt that contains the answer proves that it arrived, in the same segment or another", () => {
    const lost: Call = { ...OK, delivery: "unknown" };
    expect(reasonsOf([lost, { prompt: [1, 10, 11, 2], sampled: [12] }])).toEqual(["trained", "trained"]);
    const branches: Call[] = [
      { ...OK },
      { prompt: [1, 10, 11, 2], sampled: [12], delivery: "failed" },
      { prompt: [1, 10, 11, 3], sampled: [13] },
    ];
    expect(reasonsOf(branches)).toEqual(["trained", "undelivered", "trained"]);
    expect(reasonsOf([lost, { prompt: [9], sampled: [12] }])).toEqual(["delivery_unknown", "trained"]);
  });

  it("of a call and its retry, the one that the harness went on with trains, the other is an orphan", () => {
    const calls: Call[] = [
      { prompt: [1], sampled: [10], delivery: "failed" },
      { prompt: [1], sampled: [11], reason: "retry" },
      { prompt: [1, 11, 2], sampled: [12] },
    ];
    expect(reasonsOf(calls)).toEqual(["retry_orphan", "trained", "trained"]);
    const firstWon: Call[] = [calls[0]!, calls[1]!, { prompt: [1, 10, 2], sampled: [12] }];
    expect(reasonsOf(firstWon)).toEqual(["trained", "trained", "trained"]);
  });

  it("two delivered answers to one prompt without evidence of a retry both train: they are siblings", () => {
    expect(reasonsOf([OK, { prompt: [1], sampled: [12], reason: "identical_prompt" }])).toEqual(["trained", "trained"]);
  });
});

describe("selecting turns: weight versions", () => {
  const mixed: Call = {
    prompt: [1],
    sampled: [10, 11, 12, 13],
    versions: [
      { version: "step-5", start: 0, end: 2 },
      { version: "step-7", start: 2, end: 3 },
      { version: "unknown", start: 3, end: 4 },
    ],
  };

  it("C10.75: a turn with mixed versions is masked by age, token by token", () => {
    expect(reasonsOf([mixed], null, 7)).toEqual(["trained"]);
    expect(reasonsOf([mixed], "select: {max_version_age: 1}", 7)).toEqual(["stale_version+trained+version_unknown"]);
    expect(reasonsOf([mixed], "select: {max_version_age: 2}", 7)).toEqual(["trained+trained+version_unknown"]);
  });

  it.each<[string, string]>([
    ["120..125", "stale_version"],
    ["step-120..step-125", "stale_version"],
    ["policy/v125..policy/v120", "stale_version"],
    ["124..125", "trained"],
    ["125..125", "trained"],
    ["125..130", "trained"],
    ["unknown..125", "version_unknown"],
    ["120..default", "version_unknown"],
    ["120..", "version_unknown"],
    ["..125", "version_unknown"],
  ])("O.85: of a span under %s the oldest version counts: %s", (version, reason) => {
    const turn: Call = { ...OK, versions: [{ version, start: 0, end: 2 }] };
    expect(reasonsOf([turn], "select: {max_version_age: 1}", 125)).toEqual([reason]);
  });

  it("O.85: of a range the newest is what others are compared with", () => {
    expect(["120..125", "125..120", "step-7", "x"].map((name) => versionNumbers(name)?.newest ?? null)).toEqual([
      125,
      125,
      7,
      null,
    ]);
  });

  it("C10.74: an answer from before a weight update is as old as the newest version says", () => {
    expect(
      reasonsOf([{ ...OK, versions: [{ version: "3", start: 0, end: 2 }] }], "select: {max_version_age: 4}", 8),
    ).toEqual(["stale_version"]);
  });
});
