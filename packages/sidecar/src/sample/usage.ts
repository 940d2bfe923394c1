/** Token counts as the harness is told them: those of the ids that were recorded, whatever the engine counted (a difference is a defect of the turn). */
import type { Usage } from "../dialect/neutral.js";
import type { Sampled } from "./sampled.js";

/** Counts of the ids themselves; the engine's own only where its ids can not be counted. A part is never larger than its whole. */
export function usageOf(sampled: Sampled): Usage {
  const { promptIds, ids, usage, defects } = sampled;
  const countable = ids.length > 0 && !defects.includes("ids_invalid");
  return withinBounds({
    promptTokens: promptIds?.length ?? usage.prompt ?? 0,
    completionTokens: countable ? ids.length : (usage.completion ?? ids.length),
    cachedTokens: usage.cached,
    reasoningTokens: usage.reasoning,
  });
}

export function withinBounds(usage: Usage): Usage {
  const { promptTokens, completionTokens, cachedTokens, reasoningTokens } = usage;
  return {
    promptTokens,
    completionTokens,
    cachedTokens: cachedTokens === null ? null : Math.min(cachedTokens, promptTokens),
    reasoningTokens: reasoningTokens === null ? null : Math.min(reasoningTokens, completionTokens),
  };
}
