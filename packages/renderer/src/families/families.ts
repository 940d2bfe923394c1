/** The model families: for each what its template wants, how its output is read, and where its turns end. docs/families.md tells the same to readers. */
import { TitoError } from "@tito/format";
import { writeDeepseekV4 } from "../encoders/deepseek-v4.js";
import { writeDeepseekV32 } from "../encoders/deepseek-v32.js";
import { writeKimiK3 } from "../encoders/kimi-k3.js";
import { K3_TOKENS } from "../encoders/kimi-k3-tokens.js";
import type { Writer } from "../encoders/prompt-writer.js";
import { writeHarmonyPrompt } from "../harmony/harmony-writer.js";
import type { MessageRules } from "../template/message-values.js";
import type { ReadingRules } from "../template/read-conversation.js";
import { DEEPSEEK_TOKENS, deepseek } from "./deepseek.js";
import { HARMONY_TOKENS, harmony } from "./harmony.js";
import { hermes, THINK, TOOL_CALL } from "./hermes.js";
import { KIMI_TOKENS, kimiK2 } from "./kimi.js";
import { kimiK3 } from "./kimi-k3.js";
import { llama3, PYTHON_TAG } from "./llama.js";
import { M3_NAMESPACE, M3_THINK, minimaxM3 } from "./minimax-m3.js";
import type { Parse } from "./output.js";
import {
  DSML_V4,
  DSML_V32,
  deepseekV4,
  deepseekV32,
  GLM_MARKS,
  glm,
  glm53,
  MINIMAX_CALL,
  minimaxM2,
  qwen3Coder,
  qwen35,
} from "./tagged.js";

/** What a turn of a family can hold, under the template arguments in force. */
interface Carries {
  /** `always`: the prompt opens a block, and the template cannot print a turn without one. */
  reasoning(templateArguments: Readonly<Record<string, unknown>>): "never" | "optional" | "always";
  calls_max: number;
  content_with_calls: boolean;
  /** The template prints no argument whose value is null. */
  leaves_out_null?: boolean;
}

export interface Family {
  /** What writes the prompt: the chat template, or code that follows the vendor's own encoder. */
  writer: Writer;
  messages: MessageRules;
  carries: Carries;
  /** Variables of the template that hold special tokens. */
  template_variables: Readonly<Record<string, string>>;
  parse: Parse;
  /** What stands between the text parts of a message that is no tool's result. */
  part_separator: ReadingRules["part_separator"];
  /** Tokens that the parser looks for. */
  structure: readonly string[];
  /** Tokens that end a turn; those that the vocabulary has become the bundle's stop ids. */
  stops: readonly string[];
  /** Text at the prompt's end that means that reasoning is open; null for families without. */
  reasoning_prompt: string | null;
  /** What live streaming has to know: reasoning marks, and the first token of a call. Null: the message is given when the turn is whole. */
  live: { think: { open: string; close: string } | null; calls: string } | null;
}

const TEMPLATE: Writer = { kind: "template" };
const STANDARD: MessageRules = { arguments: "object", empty_content: "empty", call_ids: "as_given" };
const THINK_TOKENS = [THINK.open, THINK.close];
const CALL_TOKENS = [TOOL_CALL.open, TOOL_CALL.close];
const asIs = (text: string): string => text;

const ANY_CALLS = { calls_max: 8, content_with_calls: true };
const NO_REASONING: Carries = { ...ANY_CALLS, reasoning: () => "never" };
/** Reasoning unless the template argument switches it off. */
const reasoningUnless = (argument: string, kind: "optional" | "always"): Carries => ({
  ...ANY_CALLS,
  reasoning: (given) => (given[argument] === false ? "never" : kind),
});
/** DeepSeek's encoders think when either argument says so. */
const thinks = (given: Readonly<Record<string, unknown>>): boolean =>
  given.thinking === true || given.enable_thinking === true;

/** By MiniMax M3's `thinking_mode`; any other value leaves it to the model. */
const M3_REASONING = new Map<unknown, "never" | "always">([
  ["enabled", "always"],
  ["disabled", "never"],
]);

const QWEN: Omit<Family, "parse"> = {
  writer: TEMPLATE,
  messages: STANDARD,
  part_separator: "\n",
  carries: reasoningUnless("enable_thinking", "optional"),
  template_variables: {},
  structure: [...THINK_TOKENS, ...CALL_TOKENS],
  stops: ["<|im_end|>", "<|endoftext|>"],
  reasoning_prompt: THINK.open,
  live: { think: THINK, calls: TOOL_CALL.open },
};
const QWEN_WITHOUT_THINKING = {
  ...QWEN,
  carries: NO_REASONING,
  structure: CALL_TOKENS,
  reasoning_prompt: null,
  live: { think: null, calls: TOOL_CALL.open },
};
const GLM: Family = {
  ...QWEN,
  part_separator: "",
  parse: glm,
  structure: [...THINK_TOKENS, ...CALL_TOKENS, ...GLM_MARKS],
  stops: ["<|user|>", "<|observation|>", "<|endoftext|>"],
};
const GLM_47: Family = { ...GLM, carries: reasoningUnless("enable_thinking", "always") };
const DEEPSEEK: Omit<Family, "parse"> = {
  writer: TEMPLATE,
  messages: STANDARD,
  part_separator: "\n",
  carries: NO_REASONING,
  template_variables: { bos_token: "<｜begin▁of▁sentence｜>" },
  structure: [...THINK_TOKENS, ...Object.values(DEEPSEEK_TOKENS)],
  stops: ["<｜end▁of▁sentence｜>"],
  reasoning_prompt: THINK.open,
  live: { think: THINK, calls: DEEPSEEK_TOKENS.calls },
};
const LLAMA: Family = {
  writer: TEMPLATE,
  messages: STANDARD,
  part_separator: "\n",
  carries: { reasoning: () => "never", calls_max: 1, content_with_calls: false },
  template_variables: { bos_token: "<|begin_of_text|>" },
  parse: llama3,
  structure: [PYTHON_TAG],
  stops: ["<|eot_id|>", "<|eom_id|>", "<|end_of_text|>"],
  reasoning_prompt: null,
  live: null,
};

export const FAMILIES: Readonly<Record<string, Family>> = {
  demo: { ...QWEN, part_separator: "", parse: hermes({ reasoning: asIs, lead: "keep", before_call: "" }) },
  "qwen2.5": { ...QWEN_WITHOUT_THINKING, parse: hermes({ lead: "keep", before_call: "\n" }, null) },
  qwen3: { ...QWEN, parse: hermes({ lead: "cut_breaks", before_call: "\n" }) },
  "qwen3-coder": { ...QWEN_WITHOUT_THINKING, parse: qwen3Coder },
  // Its prompt opens a block, and an empty one is shown in other tokens than can be sampled.
  "qwen3.5": { ...QWEN, part_separator: "", carries: reasoningUnless("enable_thinking", "always"), parse: qwen35 },
  "glm-4.6": GLM,
  "glm-4.7": GLM_47,
  "glm-5": GLM_47,
  "glm-5.3": { ...GLM, part_separator: "\n", parse: glm53, carries: { ...ANY_CALLS, reasoning: () => "optional" } },
  "kimi-k2": {
    ...QWEN,
    messages: { ...STANDARD, call_ids: "positional" },
    part_separator: "",
    carries: NO_REASONING,
    parse: kimiK2,
    structure: [...THINK_TOKENS, ...Object.values(KIMI_TOKENS)],
    stops: ["<|im_end|>", "[EOS]"],
    live: { think: THINK, calls: KIMI_TOKENS.section },
  },
  "kimi-k3": {
    ...QWEN,
    writer: { kind: "segments", write: writeKimiK3 },
    carries: {
      ...ANY_CALLS,
      reasoning: (given) => (given.thinking === false || given.enable_thinking === false ? "never" : "optional"),
    },
    parse: kimiK3,
    structure: [K3_TOKENS.open, K3_TOKENS.close, K3_TOKENS.sep],
    stops: [K3_TOKENS.end],
    reasoning_prompt: "<|open|>think<|sep|>",
    live: null,
  },
  "deepseek-v3": {
    ...DEEPSEEK,
    messages: { arguments: "string", empty_content: "null_with_calls", call_ids: "as_given" },
    // Its template leaves a single call unclosed: what it prints is not what a model samples.
    carries: { reasoning: () => "never", calls_max: 0, content_with_calls: false },
    parse: deepseek("fenced"),
  },
  "deepseek-v3.1": { ...DEEPSEEK, parse: deepseek("bare") },
  "deepseek-v3.2": {
    ...DEEPSEEK,
    writer: { kind: "chunks", write: writeDeepseekV32 },
    // After the last user message an answer without calls has to hold reasoning.
    carries: { ...ANY_CALLS, reasoning: (given) => (thinks(given) ? "always" : "never") },
    parse: deepseekV32,
    structure: [...THINK_TOKENS, DSML_V32.open, DSML_V32.close],
    live: { think: THINK, calls: DSML_V32.open },
  },
  "deepseek-v4": {
    ...DEEPSEEK,
    writer: { kind: "chunks", write: writeDeepseekV4 },
    part_separator: "\n\n",
    carries: {
      ...ANY_CALLS,
      reasoning: (given) =>
        thinks(given) || !("thinking" in given || "enable_thinking" in given) ? "optional" : "never",
    },
    parse: deepseekV4,
    structure: [...THINK_TOKENS, DSML_V4.open, DSML_V4.close],
    live: { think: THINK, calls: DSML_V4.open },
  },
  "gpt-oss": {
    writer: { kind: "chunks", write: writeHarmonyPrompt },
    messages: STANDARD,
    part_separator: "\n",
    carries: { reasoning: () => "optional", calls_max: 1, content_with_calls: true },
    template_variables: {},
    parse: harmony,
    structure: Object.values(HARMONY_TOKENS),
    stops: [HARMONY_TOKENS.return, HARMONY_TOKENS.call],
    reasoning_prompt: null,
    live: null,
  },
  "llama-3.1": LLAMA,
  "llama-3.2": LLAMA,
  "llama-3.3": LLAMA,
  "minimax-m2": {
    ...QWEN,
    part_separator: "",
    carries: { ...ANY_CALLS, reasoning: () => "always" },
    parse: minimaxM2,
    structure: [...THINK_TOKENS, MINIMAX_CALL.open, MINIMAX_CALL.close],
    stops: ["[e~["],
    live: { think: THINK, calls: MINIMAX_CALL.open },
  },
  "minimax-m3": {
    ...QWEN,
    part_separator: "",
    carries: {
      ...ANY_CALLS,
      leaves_out_null: true,
      reasoning: ({ thinking_mode }) => M3_REASONING.get(thinking_mode) ?? "optional",
    },
    parse: minimaxM3,
    structure: [M3_THINK.open, M3_THINK.close, M3_NAMESPACE],
    stops: ["[e~["],
    reasoning_prompt: M3_THINK.open,
    // A turn without reasoning begins with a mark that is no content.
    live: null,
  },
};

/** @throws TitoError `unsupported` with the list of families. */
export function familyOf(name: string): Family {
  const family = Object.hasOwn(FAMILIES, name) ? FAMILIES[name] : undefined;
  if (family !== undefined) return family;
  throw new TitoError("unsupported", `no model family is called ${JSON.stringify(name)}`, {
    hint: `Known are ${Object.keys(FAMILIES).join(", ")}.`,
  });
}
