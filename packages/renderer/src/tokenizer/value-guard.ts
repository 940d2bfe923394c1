/**
 * Keeps text from users, tools and files from becoming a special token.
 *
 * Before a value goes into the template, each special token's text in it is broken: one character is replaced by a stand-in (a Unicode noncharacter) of the same
 * length. After the rendered text was cut at its added tokens, the plain stretches get their characters back and are encoded as plain text.
 * The same is done where a value begins or ends with a part of such a text, so that value and template together cannot form one.
 */
import { anyOf } from "./added-tokens.js";
import type { AddedToken } from "./tokenizer-data.js";

/** U+FDD0 to U+FDEF are noncharacters: never in text that is exchanged. A second set serves requests that hold them all the same. */
const FIRST_STAND_IN = 0xfdd0;
const STAND_INS_MAX = 32;
const STAND_INS = /[\ufdd0-\ufdef]/g;

export class ValueGuard {
  readonly #specialTexts: readonly string[];
  readonly #special: RegExp | null;
  /** Characters that may be replaced; a character's place in the list is its stand-in's. */
  readonly #originals: string[];
  readonly #firsts: ReadonlySet<string>;
  readonly #lasts: ReadonlySet<string>;
  readonly #suffixes: ReadonlySet<string>;
  readonly #prefixes: ReadonlySet<string>;
  readonly #lengthMax: number;

  constructor(tokens: readonly AddedToken[]) {
    this.#specialTexts = tokens.filter((token) => token.special && token.text !== "").map((token) => token.text);
    this.#special = anyOf(this.#specialTexts);
    this.#firsts = new Set(this.#specialTexts.map((text) => text[0]!));
    this.#lasts = new Set(this.#specialTexts.map((text) => text.at(-1)!));
    this.#originals = [...new Set([...this.#firsts, ...this.#lasts])].slice(0, STAND_INS_MAX);
    this.#prefixes = new Set(this.#specialTexts.flatMap((text) => properParts(text, (n) => text.slice(0, n))));
    this.#suffixes = new Set(this.#specialTexts.flatMap((text) => properParts(text, (n) => text.slice(-n))));
    this.#lengthMax = Math.max(0, ...this.#specialTexts.map((text) => text.length));
  }

  /** The value as the template may see it. Returns the same string when there is nothing to guard. */
  protect(value: string): string {
    if (this.#special === null || value === "") return value;
    // A noncharacter in the value itself would be taken for a stand-in: it becomes what UTF-8 decoders make of damage.
    let text = value.replace(STAND_INS, "\ufffd");
    text = text.replace(this.#special, (token) => this.#standIn(token[0]!) + token.slice(1));
    return this.#breakEnd(this.#breakStart(text));
  }

  /** The text with its own characters again, and whether that is the text of a special token. */
  restore(text: string): { text: string; escaped: boolean } {
    if (text.search(STAND_INS) < 0) return { text, escaped: false };
    const restored = text.replace(STAND_INS, (char) => this.#originals[char.charCodeAt(0) - FIRST_STAND_IN] ?? char);
    return { text: restored, escaped: this.#special !== null && restored.search(this.#special) >= 0 };
  }

  #standIn(char: string): string {
    return String.fromCharCode(FIRST_STAND_IN + this.#originals.indexOf(char));
  }

  /** Breaks the longest start of `text` that is the end of a special token. */
  #breakStart(text: string): string {
    for (let length = Math.min(this.#lengthMax - 1, text.length); length > 0; length--) {
      const last = text[length - 1]!;
      if (!this.#lasts.has(last) || !this.#suffixes.has(text.slice(0, length))) continue;
      return text.slice(0, length - 1) + this.#standIn(last) + text.slice(length);
    }
    return text;
  }

  /** Breaks the longest end of `text` that is the start of a special token. */
  #breakEnd(text: string): string {
    for (let length = Math.min(this.#lengthMax - 1, text.length); length > 0; length--) {
      const at = text.length - length;
      const first = text[at]!;
      if (!this.#firsts.has(first) || !this.#prefixes.has(text.slice(at))) continue;
      return text.slice(0, at) + this.#standIn(first) + text.slice(at + 1);
    }
    return text;
  }
}

function properParts(text: string, part: (length: number) => string): string[] {
  return Array.from({ length: text.length - 1 }, (_, i) => part(i + 1));
}
