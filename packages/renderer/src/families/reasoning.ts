/** Reasoning blocks: `open … close` before the answer, or `… close` when the prompt opened the block. */
import { findToken, isToken, rawText, type Span } from "./spans.js";

export interface ReasoningSplit {
  reasoning: string | null;
  /** What comes after the block. */
  rest: readonly Span[];
}

/** Text between the marks without the line breaks that templates put around it. */
const stripBreaks = (text: string): string => text.replace(/^\n+/, "").replace(/\n+$/, "");

/**
 * Takes the reasoning block off the front. A block that never closes is reasoning to the end (a turn cut by length).
 * `trim` is how the family's template prints reasoning, inverted.
 */
export function takeReasoning(
  spans: readonly Span[],
  marks: { open: string; close: string },
  opened: boolean,
  trim: (text: string) => string = stripBreaks,
): ReasoningSplit {
  let from = 0;
  if (!opened) {
    const lead = spans[0];
    const at = lead?.kind === "text" && lead.text.trim() === "" ? 1 : 0;
    if (!isToken(spans[at], marks.open)) return { reasoning: null, rest: spans };
    from = at + 1;
  } else if (isToken(spans[0], marks.open)) from = 1;
  const close = findToken(spans, marks.close, from);
  if (close < 0) return { reasoning: trim(rawText(spans.slice(from))), rest: [] };
  return { reasoning: trim(rawText(spans.slice(from, close))), rest: spans.slice(close + 1) };
}
