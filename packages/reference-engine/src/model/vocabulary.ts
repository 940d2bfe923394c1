import type { AddedToken, Tokenizer } from "../lm/index.js";

/** One stretch of a text: an added token, or the text between two of them. */
export type Piece = { marker: AddedToken } | { text: string };

/**
 * The vocabulary as the engine uses it: which ids are markers, how rendered text becomes ids, how ids become text.
 * Added tokens are recognised here, once, so that the template, the parser and the log agree on them.
 */
export class Vocabulary {
  readonly size: number;
  readonly #tokenizer: Tokenizer;
  readonly #byId = new Map<number, AddedToken>();
  readonly #byText = new Map<string, AddedToken>();
  readonly #pattern: RegExp | null;
  #idOfByte: number[] | null = null;

  constructor(tokenizer: Tokenizer) {
    this.#tokenizer = tokenizer;
    this.size = tokenizer.vocabSize;
    for (const token of tokenizer.addedTokens) {
      this.#byId.set(token.id, token);
      this.#byText.set(token.content, token);
    }
    // Longest first: where one marker's text starts another's, the longer one is meant.
    const texts = [...this.#byText.keys()].sort((a, b) => b.length - a.length).map(escapePattern);
    this.#pattern = texts.length === 0 ? null : new RegExp(texts.join("|"), "g");
  }

  /** The added token with this id, or undefined for an ordinary one. */
  marker(id: number): AddedToken | undefined {
    return this.#byId.get(id);
  }

  /** The added token with this text. */
  markerOf(text: string): AddedToken | undefined {
    return this.#byText.get(text);
  }

  /** Texts of the tokens flagged special. */
  specialTexts(): string[] {
    return [...this.#byText.values()].filter((token) => token.special).map((token) => token.content);
  }

  /** Splits a text at the added tokens in it. */
  split(text: string): Piece[] {
    const pieces: Piece[] = [];
    let from = 0;
    for (const match of this.#pattern === null ? [] : text.matchAll(this.#pattern)) {
      if (match.index > from) pieces.push({ text: text.slice(from, match.index) });
      pieces.push({ marker: this.#byText.get(match[0])! });
      from = match.index + match[0].length;
    }
    if (from < text.length) pieces.push({ text: text.slice(from) });
    return pieces;
  }

  /** Ids of a text in which added tokens are meant as tokens. */
  encode(text: string): number[] {
    return this.split(text).flatMap((piece) => ("marker" in piece ? [piece.marker.id] : this.encodePlain(piece.text)));
  }

  /** Ids of a text that is only text, whatever it spells. */
  encodePlain(text: string): number[] {
    return Array.from(this.#tokenizer.encode(text, { special: false }));
  }

  /** Ids of bytes, one token a byte: the longest way to spell a text. */
  encodeBytes(bytes: Uint8Array): number[] {
    this.#idOfByte ??= this.#singleByteIds();
    const ids = this.#idOfByte;
    return Array.from(bytes, (byte) => ids[byte] ?? 0);
  }

  #singleByteIds(): number[] {
    const ids: number[] = [];
    for (let id = 0; id < this.size; id++) {
      const [byte, second] = this.bytes(id);
      if (byte !== undefined && second === undefined && !this.#byId.has(id)) ids[byte] = id;
    }
    return ids;
  }

  bytes(id: number): Uint8Array {
    return this.#tokenizer.tokenBytes(id);
  }

  /** The text of one token alone; bytes that are no whole character become U+FFFD. */
  tokenText(id: number): string {
    return Buffer.from(this.bytes(id)).toString("utf8");
  }

  /** The text of a sequence. */
  decode(ids: readonly number[], options: { skipSpecial: boolean }): string {
    const kept = options.skipSpecial ? ids.filter((id) => this.#byId.get(id)?.special !== true) : ids;
    return Buffer.concat(kept.map((id) => this.bytes(id))).toString("utf8");
  }
}

function escapePattern(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
