import { describe, expect, it } from "vitest";
import { behaviourDoubt } from "../../src/build/sampling.js";

const NEUTRAL = {
  temperature: 1,
  top_p: 1,
  top_k: -1,
  min_p: 0,
  presence_penalty: 0,
  frequency_penalty: 0,
  repetition_penalty: 1,
};
const doubt = (sampling: Record<string, unknown>, logprob_mode: "raw" | "processed") =>
  behaviourDoubt({ sampling: { ...NEUTRAL, ...sampling }, logprob_mode }, {});

describe.each(["raw", "processed"] as const)("%s log probabilities (O.174)", (mode) => {
  it.each(["required", "any", "get_weather", { type: "any" }, { type: "tool", name: "x" }, { type: "function" }])(
    "are not the behaviour's under the tool choice %j",
    (tool_choice) => {
      expect(doubt({ tool_choice }, mode)).toBe("tool_choice forced a call");
    },
  );

  it.each(["auto", "none", { type: "auto" }, { type: "none" }, null])("are under the tool choice %j", (tool_choice) => {
    expect(doubt({ tool_choice }, mode)).toBeNull();
  });

  it.each([{ use_beam_search: true }, { num_beams: 4 }, { best_of: 2 }, { temperature: "0" }, { do_sample: false }])(
    "are not where %j chose the answer",
    (settings) => {
      expect(doubt(settings, mode)).toMatch(/not sampled/);
    },
  );

  it.each([{ use_beam_search: false }, { num_beams: 1 }, { best_of: 1 }, { best_of: null }])(
    "are with %j",
    (settings) => {
      expect(doubt(settings, mode)).toBeNull();
    },
  );
});
