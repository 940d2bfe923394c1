import type { AddedToken } from "../lm/index.js";

/** A stretch of an answer: a marker that was sampled as one token, or text. `text` is what a reader of the raw text would see of it. */
export interface AnswerPiece {
  marker: AddedToken | null;
  text: string;
}

export interface StopMatch {
  stopString: string;
}

/**
 * Looks for stop strings in an answer as it grows, and holds back what could still turn out to be the start of one.
 * The text is cut at the match; the ids are not, as in vLLM.
 */
export class StopStrings {
  readonly #stops: readonly string[];
  readonly #includeInOutput: boolean;
  readonly #heldMax: number;
  #held: AnswerPiece[] = [];

  constructor(stops: readonly string[], includeInOutput: boolean) {
    this.#stops = stops;
    this.#includeInOutput = includeInOutput;
    this.#heldMax = Math.max(0, ...stops.map((stop) => stop.length - 1));
  }

  /** Adds a piece; gives what may be shown now, and the match if there is one. */
  push(piece: AnswerPiece): { pieces: AnswerPiece[]; match: StopMatch | null } {
    if (this.#stops.length === 0) return { pieces: [piece], match: null };
    this.#held.push(piece);
    const text = this.#held.map((held) => held.text).join("");
    const found = firstMatch(text, this.#stops);
    if (found !== null) {
      const end = this.#includeInOutput ? found.at + found.stop.length : found.at;
      const { before } = cut(this.#held, end);
      this.#held = [];
      return { pieces: before, match: { stopString: found.stop } };
    }
    const { before, after } = cut(this.#held, text.length - this.#heldMax);
    this.#held = after;
    return { pieces: before, match: null };
  }

  /** What was held back, when the answer ends otherwise. */
  flush(): AnswerPiece[] {
    const pieces = this.#held;
    this.#held = [];
    return pieces;
  }
}

function firstMatch(text: string, stops: readonly string[]): { at: number; stop: string } | null {
  let best: { at: number; stop: string } | null = null;
  for (const stop of stops) {
    const at = text.indexOf(stop);
    if (at >= 0 && (best === null || at < best.at)) best = { at, stop };
  }
  return best;
}

/** Cuts pieces at a text offset. A marker is never cut: one that reaches beyond the offset stays behind it. */
function cut(pieces: readonly AnswerPiece[], offset: number): { before: AnswerPiece[]; after: AnswerPiece[] } {
  const before: AnswerPiece[] = [];
  let at = 0;
  for (const [index, piece] of pieces.entries()) {
    const end = at + piece.text.length;
    if (end <= offset) {
      before.push(piece);
      at = end;
      continue;
    }
    const rest = pieces.slice(index + 1);
    if (piece.marker !== null || offset <= at) return { before, after: [piece, ...rest] };
    before.push({ marker: null, text: piece.text.slice(0, offset - at) });
    return { before, after: [{ marker: null, text: piece.text.slice(offset - at) }, ...rest] };
  }
  return { before, after: [] };
}
