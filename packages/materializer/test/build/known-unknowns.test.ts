/** What is not known about a call is not neutral: it does not train unless the user states it or the policy allows it. */
import { describe, expect, it } from "vitest";
import { behaviourDoubt } from "../../src/build/sampling.js";
import { selectTurns } from "../../src/build/select.js";
import type { TrajectoryEvidence } from "../../src/read/evidence.js";
import { loadPolicy, printPolicy } from "../../src/recipe/policy.js";
import { NEUTRAL_SAMPLING, SAMPLING_SETTINGS } from "../../src/recipe/sampling-settings.js";
import { type Call, evidenceOf } from "../trajectories.js";

const OK: Call = { prompt: [1], sampled: [10, 11] };
const UNTOLD = Object.fromEntries(SAMPLING_SETTINGS.map((name) => [name, undefined]));

function reasons(calls: Call[], yaml: string | null = null, overrides: Partial<TrajectoryEvidence> = {}): string[] {
  const policy = loadPolicy(yaml);
  const verdicts = selectTurns(evidenceOf(calls, overrides), { policy: policy.select, newestVersion: null });
  return verdicts.map((ranges) => ranges.map((range) => range.reason ?? "trained").join("+"));
}

describe("sampling settings that nobody states (O.90)", () => {
  it.each(["raw", "unknown"] as const)("mask values of the mode %s, whichever setting it is", (mode) => {
    expect(reasons([{ ...OK, mode, sampling: UNTOLD }])).toEqual(["logprob_not_behaviour"]);
    for (const name of SAMPLING_SETTINGS)
      expect(reasons([{ ...OK, mode, sampling: { [name]: undefined } }]), name).toEqual(["logprob_not_behaviour"]);
    for (const name of SAMPLING_SETTINGS)
      expect(reasons([{ ...OK, mode, sampling: { [name]: null } }]), name).toEqual(["logprob_not_behaviour"]);
    expect(reasons([{ ...OK, mode }])).toEqual(["trained"]);
  });

  it("train when the user states them: all at once, or those that are missing", () => {
    expect(reasons([{ ...OK, sampling: UNTOLD }], "select: {sampling_defaults: neutral}")).toEqual(["trained"]);
    const missing = { ...OK, sampling: { top_k: undefined, min_p: undefined } };
    expect(reasons([missing], "select: {sampling_defaults: {top_k: -1}}")).toEqual(["logprob_not_behaviour"]);
    expect(reasons([missing], "select: {sampling_defaults: {top_k: -1, min_p: 0}}")).toEqual(["trained"]);
    // What a call states itself is not overruled.
    const hot = { ...OK, sampling: { temperature: 0.7 } };
    expect(reasons([hot], "select: {sampling_defaults: neutral}")).toEqual(["logprob_not_behaviour"]);
    // A default of the engine that reshapes is as good as one that a call states.
    expect(reasons([{ ...OK, sampling: UNTOLD }], "select: {sampling_defaults: {temperature: 1, top_k: 20}}")).toEqual([
      "logprob_not_behaviour",
    ]);
  });

  it("are no matter where the values are processed: those are the sampled distribution's, whatever it was", () => {
    expect(reasons([{ ...OK, mode: "processed", sampling: UNTOLD }])).toEqual(["trained"]);
  });

  it("a setting that no rule knows is not neutral either, and says so", () => {
    const odd = { sampling: { ...NEUTRAL_SAMPLING, cosmic_rays: 3 }, logprob_mode: "raw" as const };
    expect(behaviourDoubt(odd, {})).toContain("cosmic_rays is a setting that is not known");
    expect(behaviourDoubt({ ...odd, logprob_mode: "processed" }, {})).toBeNull();
    for (const harmless of [{ seed: 3 }, { max_tokens: 9 }, { stop: ["a"] }, { ignore_eos: true }, { mirostat: 0 }])
      expect(behaviourDoubt({ ...odd, sampling: { ...NEUTRAL_SAMPLING, ...harmless } }, {})).toBeNull();
    for (const reshaping of [
      { xtc_probability: 0.1 },
      { mirostat: 2 },
      { repeat_penalty: 1.1 },
      { use_beam_search: true },
    ])
      expect(behaviourDoubt({ ...odd, sampling: { ...NEUTRAL_SAMPLING, ...reshaping } }, {})).not.toBeNull();
  });

  it("the policy key takes no setting that it does not know, and survives printing", () => {
    expect(() => loadPolicy("select: {sampling_defaults: {top_q: 1}}")).toThrow(/sampling_defaults/);
    expect(() => loadPolicy("select: {sampling_defaults: engine}")).toThrow(/sampling_defaults/);
    const stated = loadPolicy(null, { samplingDefaults: "neutral" });
    expect(stated.select.sampling_defaults).toEqual(NEUTRAL_SAMPLING);
    expect(loadPolicy(printPolicy(stated))).toEqual(stated);
  });
});

describe("temperature 0 (O.90)", () => {
  it.each(["raw", "processed", "unknown"] as const)(
    "takes the likeliest token, and the value (mode %s) is that of a distribution that was not sampled",
    (mode) => {
      for (const sampling of [{ temperature: 0 }, { temperature: 1e-6 }, { temperature: 0.009 }, { do_sample: false }])
        expect(reasons([{ ...OK, mode, sampling }])).toEqual(["logprob_not_behaviour"]);
    },
  );

  it("also where only the engine's stated defaults say it; and trains where the policy says so", () => {
    const untold = { ...OK, mode: "processed" as const, sampling: UNTOLD };
    expect(reasons([untold], "select: {sampling_defaults: {temperature: 0}}")).toEqual(["logprob_not_behaviour"]);
    const greedy = { ...OK, sampling: { temperature: 0 } };
    expect(reasons([greedy], "select: {logprob_not_behaviour: train}")).toEqual(["trained"]);
    expect(reasons([{ ...OK, mode: "processed", sampling: { temperature: 0.01 } }])).toEqual(["trained"]);
  });
});

describe("a lost piece of a stream together with the lost count (O.91)", () => {
  const uncounted = { prompt_tokens: null, completion_tokens: null, cached_tokens: null };
  const lost: Call = { ...OK, usage: uncounted, defects: ["usage_missing"] };
  const next: Call = { prompt: [1, 10, 11, 2], sampled: [12] };

  it("is damage where the engine counts at other times, before or after", () => {
    expect(reasons([lost, next])).toEqual(["capture_damage", "trained"]);
    expect(reasons([OK, { ...next, usage: uncounted, defects: ["usage_missing"] }])).toEqual([
      "trained",
      "capture_damage",
    ]);
    // Of one count alone, and without the defect: an imported log.
    expect(reasons([{ ...OK, usage: { ...uncounted, prompt_tokens: 1 } }, next])).toEqual([
      "capture_damage",
      "trained",
    ]);
  });

  it("is damage where the recorder knew that the engine counts, also in a single call", () => {
    expect(reasons([{ ...lost, defects: ["usage_lost"] }])).toEqual(["capture_damage"]);
  });

  it("cannot be told of an engine that never counts, and a reply that was cut off has its own reason", () => {
    expect(reasons([lost, { ...next, usage: uncounted }])).toEqual(["trained", "trained"]);
    expect(reasons([{ ...lost, defects: ["stream_cut"] }, next])).toEqual(["aborted", "trained"]);
    expect(reasons([{ ...lost, defects: ["client_gone"] }, next])).toEqual(["client_gone", "trained"]);
  });
});

describe("values that no log probability can be (O.92)", () => {
  it.each([1e-5, 0.5, 17.25, Number.POSITIVE_INFINITY])("%s condemns its whole turn, under any policy", (value) => {
    const call = { ...OK, logprobs: [-0.5, value] };
    for (const yaml of [null, "select: {logprob_missing: token, logprob_not_behaviour: train}"])
      expect(reasons([call], yaml)).toEqual(["capture_damage"]);
    expect(reasons([{ ...call, mode: "processed" }])).toEqual(["capture_damage"]);
  });

  it("NaN and minus infinity are missing, and the noise of float32 is none", () => {
    for (const value of [Number.NaN, Number.NEGATIVE_INFINITY])
      expect(reasons([{ ...OK, logprobs: [-0.5, value] }])).toEqual(["logprob_missing"]);
    expect(reasons([{ ...OK, logprobs: [0, 1.1920928955078125e-7] }])).toEqual(["trained"]);
  });

  it("the recorder's own word for it is enough", () => {
    const call = { ...OK, logprobs: [-0.5, null], defects: ["logprob_not_finite", "logprob_positive"] };
    expect(reasons([call], "select: {logprob_missing: token}")).toEqual(["capture_damage"]);
  });
});

describe("finish reasons that no rule knows (O.93)", () => {
  it.each([
    [{ finish: "unknown", defects: ["finish_unknown"] }, "finish_unknown"],
    [{ finish: "unknown", defects: ["finish_missing"] }, "finish_unknown"],
    // Older recordings say no more than this.
    [{ finish: "unknown" }, "finish_unknown"],
    [{ finish: "error" }, "aborted"],
    [{ finish: "abort" }, "aborted"],
  ] as const)("%j does not train, and a policy can allow what is only unknown", (fields, reason) => {
    const call: Call = { ...OK, finish: fields.finish, defects: "defects" in fields ? [...fields.defects] : [] };
    expect(reasons([call])).toEqual([reason]);
    expect(reasons([call, { prompt: [1, 10, 11, 2], sampled: [12] }])[0]).toBe(reason);
    const allowed = reason === "finish_unknown" ? "trained" : reason;
    expect(reasons([call], "select: {finish_unknown: train}")).toEqual([allowed]);
  });

  it("a log that has no such field at all is no recording that lost one", () => {
    expect(reasons([{ ...OK, finish: "unknown" }], null, { imported: true })).toEqual(["trained"]);
    const told: Call = { ...OK, finish: "unknown", defects: ["finish_unknown"] };
    expect(reasons([told], null, { imported: true })).toEqual(["finish_unknown"]);
  });
});
