/** Are the recorded log probabilities those of the distribution that was sampled from? Pure. */
import type { EvidenceTurn } from "../read/evidence.js";

/** Fields that change the distribution, with the values at which they do not. `-1` and `0` both switch `top_k` off. */
const NEUTRAL: ReadonlyMap<string, readonly number[]> = new Map([
  ["temperature", [1]],
  ["top_p", [1]],
  ["top_k", [0, -1]],
  ["min_p", [0]],
  ["typical_p", [1]],
  ["top_a", [0]],
  ["tfs", [1]],
  ["presence_penalty", [0]],
  ["frequency_penalty", [0]],
  ["repetition_penalty", [1]],
  ["min_tokens", [0]],
]);

/** Fields that forbid tokens: whatever the mode, the recorded value is not proven to be the masked distribution's. */
const CONSTRAINING = [
  "guided_json",
  "guided_regex",
  "guided_choice",
  "guided_grammar",
  "structured_outputs",
  "structural_tag",
  "json_schema",
  "regex",
  "ebnf",
  "grammar",
  "bad_words",
  "logit_bias",
  "allowed_token_ids",
];

/** True when no field of `sampling` moves the distribution away from the model's softmax. */
function isNeutral(sampling: Readonly<Record<string, unknown>>): boolean {
  for (const [field, neutral] of NEUTRAL) {
    const value = sampling[field];
    if (value === undefined || value === null) continue;
    if (typeof value !== "number" || !neutral.includes(value)) return false;
  }
  return true;
}

/** True when the decoding was constrained by a grammar, a schema, a forced tool or a token list. */
function isConstrained(sampling: Readonly<Record<string, unknown>>): boolean {
  for (const field of CONSTRAINING) {
    const value = sampling[field];
    if (value === undefined || value === null || value === false || isEmpty(value)) continue;
    return true;
  }
  const format = sampling.response_format;
  if (typeof format === "object" && format !== null && "type" in format && format.type !== "text") return true;
  const choice = sampling.tool_choice;
  return choice === "required" || (typeof choice === "object" && choice !== null);
}

function isEmpty(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}

/**
 * Processed values are behaviour values under any filter; raw or unknown ones only when nothing filtered or reshaped.
 * Constrained decoding is never behaviour.
 */
export function isBehaviourLogprob(turn: Pick<EvidenceTurn, "sampling" | "logprob_mode">): boolean {
  if (isConstrained(turn.sampling)) return false;
  return turn.logprob_mode === "processed" || isNeutral(turn.sampling);
}
