/** Plain text to ids: cut into pieces, each piece merged. Linear in the length of the text, whatever the text. */
import type { TiktokenClass } from "./bpe-engine.js";
import { encodePiece } from "./merge-piece.js";
import { PieceSplitter } from "./piece-splitter.js";
import type { RankTable } from "./rank-table.js";
import type { SplitPattern } from "./split-pattern.js";

export class BpeEncoder {
  readonly #ranks: RankTable;
  readonly #splitter: PieceSplitter;

  constructor(ranks: RankTable, engine: TiktokenClass, pattern: SplitPattern) {
    this.#ranks = ranks;
    this.#splitter = new PieceSplitter(engine, pattern);
  }

  encode(text: string): Int32Array {
    // UTF-8, which the ids spell, has no lone surrogates: encoders make them U+FFFD, and so they are cut as such.
    const whole = LONE.test(text) ? text.replace(LONE_ALL, "\ufffd") : text;
    const bytes = Buffer.from(whole, "utf8");
    const ids = new Int32Array(bytes.length);
    const ascii = bytes.length === whole.length;
    let from = 0;
    let count = 0;
    this.#splitter.eachPiece(whole, (start, end) => {
      const to = from + (ascii ? end - start : utf8Length(whole, start, end));
      count = encodePiece(this.#ranks, bytes, from, to, ids, count);
      from = to;
    });
    return ids.slice(0, count);
  }
}

const LONE = /\p{Surrogate}/u;
const LONE_ALL = /\p{Surrogate}/gu;

function utf8Length(text: string, start: number, end: number): number {
  let length = 0;
  for (let i = start; i < end; i++) {
    const code = text.charCodeAt(i);
    // Each half of a surrogate pair stands for two of its four bytes.
    length += code < 0x80 ? 1 : code < 0x800 || (code & 0xf800) === 0xd800 ? 2 : 3;
  }
  return length;
}
