/** Finds added tokens in text, leftmost first and longest first among those that start at one place, as the reference does. */
import type { AddedToken } from "./tokenizer-data.js";

const escapeRegex = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");

/** A regular expression that matches any of the texts, longest first; null for none. */
export function anyOf(texts: readonly string[]): RegExp | null {
  if (texts.length === 0) return null;
  const longestFirst = [...texts].sort((a, b) => b.length - a.length);
  return new RegExp(longestFirst.map(escapeRegex).join("|"), "g");
}

/** Called with each stretch of plain text and each added token, in order. Empty stretches are left out. */
export interface PieceVisitor {
  plain(text: string): void;
  token(id: number): void;
}

export class AddedTokens {
  readonly idByText: ReadonlyMap<string, number>;
  /** Length of the longest added token, in UTF-16 units. */
  readonly lengthMax: number;
  readonly #textsByFirst: ReadonlyMap<string, string[]>;
  readonly #passes: readonly RegExp[];

  constructor(tokens: readonly AddedToken[]) {
    const usable = tokens.filter((token) => token.text !== "");
    this.idByText = new Map(usable.map((token) => [token.text, token.id]));
    const texts = usable.map((token) => token.text);
    this.lengthMax = Math.max(0, ...texts.map((text) => text.length));
    this.#textsByFirst = new Map(
      [...new Set(texts.map((text) => text[0]!))].map((first) => [first, texts.filter((t) => t[0] === first)]),
    );
    const pass = (second: boolean) => anyOf(usable.filter((t) => t.second_pass === second).map((t) => t.text));
    this.#passes = [pass(false), pass(true)].filter((regex) => regex !== null);
  }

  /** Cuts `text` into plain stretches and added tokens. */
  split(text: string, visitor: PieceVisitor): void {
    this.#splitPass(text, 0, visitor);
  }

  #splitPass(text: string, pass: number, visitor: PieceVisitor): void {
    if (text === "") return;
    const regex = this.#passes[pass];
    if (regex === undefined) {
      visitor.plain(text);
      return;
    }
    let from = 0;
    for (const match of text.matchAll(regex)) {
      this.#splitPass(text.slice(from, match.index), pass + 1, visitor);
      visitor.token(this.idByText.get(match[0])!);
      from = match.index + match[0].length;
    }
    this.#splitPass(from === 0 ? text : text.slice(from), pass + 1, visitor);
  }

  /** True when some added token starts inside `left` and ends inside `right`. */
  straddles(left: string, right: string): boolean {
    const tail = left.slice(Math.max(0, left.length - this.lengthMax + 1));
    for (let at = 0; at < tail.length; at++) {
      const candidates = this.#textsByFirst.get(tail[at]!);
      if (candidates === undefined) continue;
      const window = tail.slice(at) + right.slice(0, this.lengthMax - 1);
      if (candidates.some((text) => at + text.length > tail.length && window.startsWith(text))) return true;
    }
    return false;
  }
}
