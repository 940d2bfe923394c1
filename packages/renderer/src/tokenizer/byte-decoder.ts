/** Turns ids into bytes and bytes into text, one id at a time, never cutting a UTF-8 sequence. */

const EMPTY = new Uint8Array(0);

/** Bytes per id. An id without a token (models pad their output layer; a server can sample such ids) has none. */
export class ByteTable {
  readonly #bytesById: readonly (Uint8Array | undefined)[];

  constructor(bytesById: readonly (Uint8Array | undefined)[]) {
    this.#bytesById = bytesById;
  }

  bytesOf(id: number): Uint8Array {
    return this.#bytesById[id] ?? EMPTY;
  }

  has(id: number): boolean {
    return this.#bytesById[id] !== undefined;
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
