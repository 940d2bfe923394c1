/** The context window that a harness plans its compaction with: the engine's, where it tells one. */

/** Taken where nobody says how long the window is. */
export const CONTEXT_TOKENS = 131_072;
/** The longest answer where the user does not say. */
export const OUTPUT_TOKENS = 8192;
/** The share of a small window that one answer gets: prompts with tools and files need the rest. */
const OUTPUT_SHARE = 8;

export interface Window {
  contextTokens: number;
  outputTokens: number;
  /** One line for the user. */
  words: string;
}

export interface WindowLimits {
  /** What the endpoint says: the least of the engine's window and the user's limit. Null: neither is known. */
  told: number | null;
  /** The user's `--max-context-tokens`. */
  maxContextTokens: number | null;
  /** The user's `--max-output-tokens`. */
  maxOutputTokens: number | null;
}

export function planWindow({ told, maxContextTokens, maxOutputTokens }: WindowLimits): Window {
  const contextTokens = told ?? maxContextTokens ?? CONTEXT_TOKENS;
  const share = Math.max(1, Math.floor(contextTokens / OUTPUT_SHARE));
  const outputTokens = maxOutputTokens ?? Math.min(OUTPUT_TOKENS, share);
  const source =
    told === null && maxContextTokens === null
      ? "the engine tells no window; --max-context-tokens gives another"
      : contextTokens === maxContextTokens
        ? "--max-context-tokens"
        : "the engine's window";
  return {
    contextTokens,
    outputTokens,
    words: `the harness plans with ${contextTokens} tokens of context (${source}) and answers of at most ${outputTokens}`,
  };
}
