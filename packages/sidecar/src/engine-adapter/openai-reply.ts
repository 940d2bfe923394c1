/** What OpenAI-shaped replies (chat and completions of vLLM, SGLang and Fireworks) have in common for an adapter. */
import { asArray, asObject } from "../json/narrow.js";
import { readEngineChunk } from "../sample/engine-chunk.js";
import type { ChunkReader } from "../sample/sent-call.js";

export const openAiReader = (): ChunkReader => readEngineChunk;

/** Log probability of the likeliest first token: chat lists the alternatives, completions map them. */
export function likeliestFirst(json: unknown): number | null {
  const choice = asObject(asArray(asObject(json)?.choices)?.[0]);
  const logprobs = asObject(choice?.logprobs);
  const first = asObject(asArray(logprobs?.content)?.[0]);
  const listed = (asArray(first?.top_logprobs) ?? []).map((one) => asObject(one)?.logprob);
  return highest([...listed, ...Object.values(asObject(asArray(logprobs?.top_logprobs)?.[0]) ?? {})]);
}

/** The largest finite number; null where there is none. */
export function highest(values: readonly unknown[]): number | null {
  const numbers = values.filter((value): value is number => typeof value === "number" && Number.isFinite(value));
  return numbers.length === 0 ? null : numbers.reduce((a, b) => Math.max(a, b));
}
