/** Finds the id of a byte sequence. One flat table: a map of strings would take half a second and fifty megabytes to make. */
import type { ByteTable } from "./byte-decoder.js";

const FREE = -1;

export class RankTable {
  readonly #bytes: ByteTable;
  /** Ids by the hash of their bytes; the next free place when it is taken. At most half full. */
  readonly #places: Int32Array;
  readonly #lengthMax: number;

  constructor(bytes: ByteTable) {
    this.#bytes = bytes;
    let size = 1024;
    while (size < 2 * bytes.rankCount) size *= 2;
    const places = new Int32Array(size).fill(FREE);
    let lengthMax = 0;
    bytes.eachRank((id, block, start, end) => {
      lengthMax = Math.max(lengthMax, end - start);
      let place = hash(block, start, end) & (size - 1);
      while (places[place] !== FREE) place = (place + 1) & (size - 1);
      places[place] = id;
    });
    this.#places = places;
    this.#lengthMax = lengthMax;
  }

  /** Id of `text[from, to)`, -1 when that is no token. */
  idOf(text: Uint8Array, from: number, to: number): number {
    if (to - from > this.#lengthMax) return -1;
    const mask = this.#places.length - 1;
    for (let place = hash(text, from, to) & mask; ; place = (place + 1) & mask) {
      const id = this.#places[place]!;
      if (id === FREE || this.#bytes.spells(id, text, from, to)) return id;
    }
  }
}

/** FNV-1a, its high bits folded into the low ones. */
function hash(bytes: Uint8Array, from: number, to: number): number {
  let value = 0x811c9dc5;
  for (let i = from; i < to; i++) value = Math.imul(value ^ bytes[i]!, 0x01000193);
  return value ^ (value >>> 15);
}
