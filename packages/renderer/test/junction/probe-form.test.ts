/** Which form certification's probes take, and what it then says: thinking only, thinking switched off, thinking at the model's choice. */
import { describe, expect, it } from "vitest";
import { certify } from "../../src/junction/certify.js";
import { findForm } from "../../src/junction/probe-form.js";
import { SHAPES, type Shape } from "../../src/junction/shapes.js";
import { type BundleChanges, openChangedRenderer } from "../byte-bundles.js";
import { VOCABULARIES, vocabularyMissing } from "../vocabularies.js";

/** The ending of Qwen3's template, in the form of its thinking-only successors (Qwen3-Thinking-2507, Qwen3-Next-Thinking). */
const thinkingOnly = (template: string): string => {
  const at = template.lastIndexOf("{%- if add_generation_prompt %}");
  return `${template.slice(0, at)}{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n<think>\\n' }}{%- endif %}`;
};
/** The same, but reasoning stays in history. */
const thinkingKept = (template: string): string =>
  thinkingOnly(template)
    .replace("loop.index0 > ns.last_query_index", "true")
    .replace("loop.last or (not loop.last and reasoning_content)", "true");

const LOOP: Shape[] = ["tool_result", "parallel_results"];
const WITHOUT_REASONING = SHAPES.filter((shape) => shape !== "user_turn_after_reasoning");
const WITH_REASONING = SHAPES.filter((shape) => shape !== "user_turn");

interface Case {
  family: string;
  changes?: BundleChanges;
  form: { reasoning: "never" | "optional" | "always"; empty_reasoning?: string };
  certified: readonly Shape[];
}

const CASES: Record<string, Case> = {
  "Qwen3, thinking only": {
    family: "qwen3",
    changes: { template: thinkingOnly },
    form: { reasoning: "always" },
    certified: LOOP,
  },
  "Qwen3, thinking only and switched off in vain": {
    family: "qwen3",
    changes: { template: thinkingOnly, args: { enable_thinking: false } },
    form: { reasoning: "always" },
    certified: LOOP,
  },
  // Its empty block is the open one, closed: letter by letter it could be sampled, in the real vocabulary two line breaks are one token.
  "Qwen3, thinking only, reasoning kept": {
    family: "qwen3",
    changes: { template: thinkingKept },
    form: { reasoning: "optional" },
    certified: SHAPES,
  },
  "Qwen3, thinking switched off": {
    family: "qwen3",
    changes: { args: { enable_thinking: false } },
    form: { reasoning: "never", empty_reasoning: "\n" },
    certified: LOOP,
  },
  "Qwen3, the model's choice": {
    family: "qwen3",
    form: { reasoning: "optional" },
    certified: [...LOOP, "user_turn", "user_turn_after_length", "user_turn_after_stop_string"],
  },
  "Qwen3.5, thinking": { family: "qwen3.5", form: { reasoning: "always" }, certified: LOOP },
  "Qwen3.5, thinking switched off": {
    family: "qwen3.5",
    changes: { args: { enable_thinking: false } },
    form: { reasoning: "never" },
    certified: LOOP,
  },
  "GLM 4.7, thinking switched off": {
    family: "glm-4.7",
    changes: { args: { enable_thinking: false } },
    form: { reasoning: "never" },
    certified: WITHOUT_REASONING,
  },
  "DeepSeek V4, no effort": {
    family: "deepseek-v4",
    changes: { args: { reasoning_effort: "none" } },
    form: { reasoning: "never" },
    certified: WITHOUT_REASONING,
  },
  "MiniMax M3, always thinking": {
    family: "minimax-m3",
    changes: { args: { thinking_mode: "enabled" } },
    form: { reasoning: "always" },
    certified: WITH_REASONING,
  },
  "Kimi K3, thinking switched off": {
    family: "kimi-k3",
    changes: { args: { thinking: false } },
    form: { reasoning: "never" },
    certified: WITHOUT_REASONING,
  },
};

describe.each(Object.entries(CASES))("O.122 %s", (_name, { family, changes = {}, form, certified }) => {
  it("is probed as its template prints a reply, and certified where that holds", async () => {
    const renderer = await openChangedRenderer(family, changes);
    const found = findForm(renderer);
    expect({ reasoning: found.reasoning, empty_reasoning: found.empty_reasoning }).toEqual(form);
    const { shapes, refused } = certify(renderer, { conversations: 8, seed: 7 });
    expect(Object.keys(shapes)).toEqual(certified);
    for (const { why } of refused) expect(why).not.toBe("");
  });
});

const VOCABULARY = "qwen3";
describe.skipIf(vocabularyMissing(VOCABULARY))("O.122 Qwen3 with its own vocabulary", () => {
  it.each<[string, readonly Shape[]]>([
    ["Qwen3, thinking only", LOOP],
    ["Qwen3, thinking only, reasoning kept", WITH_REASONING],
    ["Qwen3, thinking switched off", LOOP],
  ])("%s", async (name, certified) => {
    const { family, changes } = CASES[name]!;
    const renderer = await openChangedRenderer(family, { ...changes, vocabulary: VOCABULARIES[VOCABULARY]! });
    const { shapes } = certify(renderer, { conversations: 10, seed: 2 });
    expect(Object.keys(shapes)).toEqual(certified);
  });
});
