/** Turns ids into bytes and bytes into text, one id at a time, never cutting a UTF-8 sequence. */

import type { TokenizerData } from "./tokenizer-data.js";

const EMPTY = new Uint8Array(0);
const SPACE = 0x20;
const LINE_BREAK = 0x0a;
const MARK = 0x21;

const BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/** Six bits by character; 64 for every other character. */
const SEXTETS = Uint8Array.from({ length: 128 }, (_, code) => (BASE64.indexOf(String.fromCharCode(code)) + 65) % 65);

/**
 * Bytes per id, in one block. An id without a token (models pad their output layer; a server can sample such ids) has none.
 * A vocabulary is read once, character by character: as strings its tokens would take a hundred times as long.
 */
export class ByteTable {
  /** One more than the highest id. */
  readonly size: number;
  readonly #rankIds: Int32Array;
  readonly #block: Uint8Array;
  readonly #starts: Int32Array;
  readonly #ends: Int32Array;

  constructor({ ranks, added_tokens }: Pick<TokenizerData, "ranks" | "added_tokens">) {
    const added = added_tokens.map((token) => ({ id: token.id, bytes: Buffer.from(token.text, "utf8") }));
    const read = readRanks(ranks);
    this.size = Math.max(read.ids.at(-1) ?? -1, ...added.map((token) => token.id)) + 1;
    this.#rankIds = read.ids;
    this.#block = new Uint8Array(added.reduce((sum, { bytes }) => sum + bytes.length, read.bytes.length));
    this.#block.set(read.bytes);
    this.#starts = new Int32Array(this.size);
    this.#ends = new Int32Array(this.size);
    let at = 0;
    for (let i = 0; i < read.ids.length; i++) {
      const id = read.ids[i]!;
      this.#starts[id] = at;
      at = read.ends[i]!;
      this.#ends[id] = at;
    }
    for (const { id, bytes } of added) {
      this.#block.set(bytes, at);
      this.#starts[id] = at;
      at += bytes.length;
      this.#ends[id] = at;
    }
  }

  bytesOf(id: number): Uint8Array {
    const start = this.#starts[id];
    const end = this.#ends[id];
    return start === undefined || end === undefined || start === end ? EMPTY : this.#block.subarray(start, end);
  }

  /** How many ids merges can make. */
  get rankCount(): number {
    return this.#rankIds.length;
  }

  /** Calls `visit` for each id that merges can make; its bytes are `block[start, end)`. */
  eachRank(visit: (id: number, block: Uint8Array, start: number, end: number) => void): void {
    for (const id of this.#rankIds) visit(id, this.#block, this.#starts[id]!, this.#ends[id]!);
  }

  /** True when the token's bytes are `text[from, to)`. */
  spells(id: number, text: Uint8Array, from: number, to: number): boolean {
    let at = this.#starts[id]!;
    if (this.#ends[id]! - at !== to - from) return false;
    for (let i = from; i < to; i++) if (this.#block[at++] !== text[i]) return false;
    return true;
  }

  decodeBytes(ids: Iterable<number>): Uint8Array {
    return Buffer.concat(Array.from(ids, (id) => this.bytesOf(id)));
  }

  /** Text of `ids`; bytes that are not UTF-8 become U+FFFD. */
  decode(ids: Iterable<number>): string {
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(this.decodeBytes(ids));
  }
}

interface Ranks {
  ids: Int32Array;
  /** Where the bytes of each of `ids` end; they begin where those of the one before end. */
  ends: Int32Array;
  bytes: Uint8Array;
}

/** Reads lines `! OFFSET base64 base64 …`. */
function readRanks(text: string): Ranks {
  const { length } = text;
  const bytes = new Uint8Array(length);
  const ids = new Int32Array((length >> 1) + 1);
  const ends = new Int32Array((length >> 1) + 1);
  let count = 0;
  let written = 0;
  let id = 0;
  let at = 0;
  const endOfWord = (): number => {
    let end = at;
    while (end < length && text.charCodeAt(end) !== SPACE && text.charCodeAt(end) !== LINE_BREAK) end++;
    return end;
  };
  while (at < length) {
    const code = text.charCodeAt(at);
    if (code === SPACE || code === LINE_BREAK) at++;
    else if (code === MARK) {
      at += 2;
      const end = endOfWord();
      id = Number(text.slice(at, end));
      at = end;
    } else {
      let bits = 0;
      let held = 0;
      for (; at < length; at++) {
        const sextet = SEXTETS[text.charCodeAt(at)]!;
        if (sextet === 64) break;
        bits = ((bits << 6) | sextet) & 0xffff;
        held += 6;
        if (held < 8) continue;
        held -= 8;
        bytes[written++] = bits >> held;
      }
      at = endOfWord();
      ids[count] = id++;
      ends[count++] = written;
    }
  }
  return { ids: ids.slice(0, count), ends: ends.slice(0, count), bytes: bytes.subarray(0, written) };
}

/** Text as far as it is certain: bytes of an unfinished character are held until the next id or the end. */
export class StreamingText {
  readonly #table: ByteTable;
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });

  constructor(table: ByteTable) {
    this.#table = table;
  }

  push(id: number): string {
    return this.#decoder.decode(this.#table.bytesOf(id), { stream: true });
  }

  /** What is left; an unfinished character becomes U+FFFD. */
  end(): string {
    return this.#decoder.decode();
  }
}
