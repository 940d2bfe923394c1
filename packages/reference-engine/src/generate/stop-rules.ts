/** When an answer ends. */
export interface StopRules {
  /** At least 1. */
  maxTokens: number;
  eosIds: ReadonlySet<number>;
  ignoreEos: boolean;
  stopTokenIds: ReadonlySet<number>;
  stopStrings: string[];
  /** Leaves the stop string or the stop token's text in the text. */
  includeStopText: boolean;
}

/** Why an answer ended. `stopReason` as in vLLM: the id of a stop token, the stop string, null for the end-of-sequence token and all else. */
export interface Finish {
  reason: "stop" | "length" | "abort";
  stopReason: number | string | null;
}

/** Whether this token, the `count`th, ends the answer by itself. The end-of-sequence token is looked at first, as in vLLM. */
export function finishAt(rules: StopRules, id: number, count: number): Finish | null {
  if (!rules.ignoreEos && rules.eosIds.has(id)) return { reason: "stop", stopReason: null };
  if (rules.stopTokenIds.has(id)) return { reason: "stop", stopReason: id };
  return count >= rules.maxTokens ? { reason: "length", stopReason: null } : null;
}
