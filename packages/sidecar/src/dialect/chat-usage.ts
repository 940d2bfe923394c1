/** `usage` as the chat API spells it, and the engine's own spelling of it set right. */
import { asCount, asObject } from "../json/narrow.js";
import { editObject, parseEngineJson } from "../json/slices.js";
import type { Usage } from "./neutral.js";

/** Details only where they are known. */
export function chatUsage(usage: Usage): Record<string, number | Record<string, number>> {
  const { promptTokens, completionTokens, cachedTokens, reasoningTokens } = usage;
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    ...(cachedTokens === null ? {} : { prompt_tokens_details: { cached_tokens: cachedTokens } }),
    ...(reasoningTokens === null ? {} : { completion_tokens_details: { reasoning_tokens: reasoningTokens } }),
  };
}

/** The engine's `usage` with the right counts: one that is right already keeps its bytes, and another keeps what else it holds. */
export function rightUsage(text: string, usage: Usage): string {
  const told = asObject(parseEngineJson(text));
  if (told === null) return JSON.stringify(chatUsage(usage));
  const edits = new Map<string, string>();
  for (const [key, right] of Object.entries(chatUsage(usage))) {
    if (typeof right === "number") {
      if (told[key] !== right) edits.set(key, String(right));
      continue;
    }
    const details = asObject(told[key]) ?? {};
    const wrong = Object.entries(right).some(([name, count]) => (asCount(details[name]) ?? count) !== count);
    if (wrong) edits.set(key, JSON.stringify({ ...details, ...right }));
  }
  return edits.size === 0 ? text : editObject(text, edits);
}
