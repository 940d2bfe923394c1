/** Reasoning blocks: `open … close` before the answer, or `… close` when the prompt opened the block. */
import { findToken, holdsMark, isToken, rawText, type Span } from "./spans.js";

export interface ReasoningSplit {
  reasoning: string | null;
  /** What comes after the block. */
  rest: readonly Span[];
  /** The block holds marks, is opened twice, or does not close although the turn ended. */
  flawed: boolean;
}

/** What the turn's surroundings say about its reasoning. */
interface Surroundings {
  /** The prompt opened the block. */
  reasoning_open: boolean;
  /** The policy ended the turn itself: nothing was cut. */
  ended: boolean;
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
  { reasoning_open, ended }: Surroundings,
  trim: (text: string) => string = stripBreaks,
): ReasoningSplit {
  let from = 0;
  let twice = false;
  if (!reasoning_open) {
    const lead = spans[0];
    const at = lead?.kind === "text" && lead.text.trim() === "" ? 1 : 0;
    if (!isToken(spans[at], marks.open)) return { reasoning: null, rest: spans, flawed: false };
    from = at + 1;
  } else if (isToken(spans[0], marks.open)) {
    from = 1;
    twice = true;
  }
  const close = findToken(spans, marks.close, from);
  const block = spans.slice(from, close < 0 ? undefined : close);
  return {
    reasoning: trim(rawText(block)),
    rest: close < 0 ? [] : spans.slice(close + 1),
    flawed: twice || (close < 0 && ended) || holdsMark(block),
  };
}
