/** Turns ids into bytes and bytes into text, one id at a time, never cutting a UTF-8 sequence. */

import type { TokenizerData } from "./tokenizer-data.js";

const EMPTY = new Uint8Array(0);

/** Bytes per id, in one block. An id without a token (models pad their output layer; a server can sample such ids) has none. */
export class ByteTable {
  /** One more than the highest id. */
  readonly size: number;
  readonly #block: Buffer;
  /** `[offsets[id], offsets[id + 1])` of the block. */
  readonly #offsets: Int32Array;

  constructor(data: Pick<TokenizerData, "ranks" | "added_tokens">) {
    const texts: (string | undefined)[] = [];
    for (const line of data.ranks.split("\n")) {
      const [mark, offset, ...tokens] = line.split(" ");
      let id = Number(offset);
      if (mark === "!") for (const token of tokens) texts[id++] = token;
    }
    for (const token of data.added_tokens) texts[token.id] = Buffer.from(token.text, "utf8").toString("base64");
    this.size = texts.length;
    this.#block = Buffer.alloc(texts.reduce((sum, text) => sum + (text?.length ?? 0), 0));
    this.#offsets = new Int32Array(texts.length + 1);
    let at = 0;
    for (let id = 0; id < texts.length; id++) {
      const text = texts[id];
      if (text !== undefined) at += this.#block.write(text, at, "base64");
      this.#offsets[id + 1] = at;
    }
  }

  bytesOf(id: number): Uint8Array {
    const start = this.#offsets[id];
    const end = this.#offsets[id + 1];
    return start === undefined || end === undefined || start === end ? EMPTY : this.#block.subarray(start, end);
  }

  decodeBytes(ids: Iterable<number>): Uint8Array {
    return Buffer.concat(Array.from(ids, (id) => this.bytesOf(id)));
  }

  /** Text of `ids`; bytes that are not UTF-8 become U+FFFD. */
  decode(ids: Iterable<number>): string {
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(this.decodeBytes(ids));
  }
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
