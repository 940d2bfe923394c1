/**
 * Which sampling fields are sent. Engines fall back to the model's generation_config.json for omitted ones, so that
 * what was sampled from would be unknown: omitted fields are sent explicitly.
 */
import type { SidecarConfig } from "../config/config.js";
import type { NeutralRequest } from "../dialect/neutral.js";

/** The whole distribution, untouched. -1 is how vLLM spells "top_k off". */
const NEUTRAL: readonly (readonly [string, number])[] = [
  ["temperature", 1],
  ["top_p", 1],
  ["top_k", -1],
  ["min_p", 0],
  ["repetition_penalty", 1],
  ["presence_penalty", 0],
  ["frequency_penalty", 0],
];

export const NEUTRAL_SAMPLING: Readonly<Record<string, number>> = Object.fromEntries(NEUTRAL);

export interface EffectiveSampling {
  /** Fields to add to the request body, as JSON text. */
  added: Map<string, string>;
  /** Everything that shaped the distribution, as stored with the turn. */
  effective: Record<string, unknown>;
}

/** Effective sampling of one request under the configured policy. The harness's own values always win. */
export function effectiveSampling(
  request: NeutralRequest,
  policy: SidecarConfig["sampling"],
  maxOutputTokens: number | null,
): EffectiveSampling {
  const added = new Map<string, string>();
  const own = new Map(Object.entries(request.sampling));
  const effective = new Map<string, unknown>(own);
  if (policy !== "engine") {
    const defaults = new Map([...NEUTRAL, ...(policy === "neutral" ? [] : Object.entries(policy))]);
    for (const [name, value] of defaults) {
      if (own.has(name)) continue;
      added.set(name, JSON.stringify(value));
      effective.set(name, value);
    }
  }
  const maxTokens = lowest(request.maxOutputTokens, maxOutputTokens);
  if (maxTokens !== null) effective.set("max_tokens", maxTokens);
  if (request.stop.length > 0) effective.set("stop", request.stop);
  if (request.toolChoice === "none") effective.set("tool_choice", "none");
  for (const [name, text] of request.constraints ?? []) effective.set(name, JSON.parse(text));
  return { added, effective: Object.fromEntries(effective) };
}

/** The smaller of two limits, where null is no limit. */
export function lowest(a: number | null, b: number | null): number | null {
  if (a === null) return b;
  return b === null ? a : Math.min(a, b);
}
