/**
 * Reads msgpack that nobody vouches for, in one pass: plain, bounded values and nothing else. Each head is checked before anything is made of it,
 * so a claim costs no memory. Maps become `Map`: keys such as `__proto__` are data like any other. Binaries are views of the input.
 */
import { LIMITS } from "./limits.js";

/** What a payload is made of on both sides. */
export type Wire = null | boolean | number | string | Uint8Array | Wire[] | WireMap;
export interface WireMap extends Map<string, Wire> {}

/** Short texts come again and again (keys, roles, reasons): they are made once. A slot holds the last text that fell on it. */
const SHORT_BYTES_MAX = 32;
const SLOTS = 2048;
const shortTexts: string[] = new Array<string>(SLOTS).fill("");

/** Why the bytes are not one bounded map of plain values. */
export class PayloadProblem extends Error {}

/** The map that these bytes are. Throws {@link PayloadProblem}. */
export function readPayload(bytes: Uint8Array): WireMap {
  const head = bytes[0];
  if (head === undefined || !((head >= 0x80 && head <= 0x8f) || head === 0xde || head === 0xdf))
    throw new PayloadProblem("the payload is not a map");
  const reader = new PayloadReader(bytes);
  const map = reader.value(0) as WireMap;
  if (reader.at !== bytes.length) throw new PayloadProblem(`${bytes.length - reader.at} bytes after the map`);
  return map;
}

/** A key as it stands in a payload, head included. */
export function packedKey(key: string): Uint8Array {
  const bytes = Buffer.from(key, "utf8");
  return bytes.length < 32
    ? Buffer.concat([Buffer.of(0xa0 | bytes.length), bytes])
    : Buffer.concat([Buffer.of(0xd9, bytes.length), bytes]);
}

/** Walks a payload value by value. */
export class PayloadReader {
  at = 0;
  private values = 0;
  private readonly buffer: Buffer;
  private readonly view: DataView;

  constructor(bytes: Uint8Array) {
    const { buffer, byteOffset, byteLength } = bytes;
    this.buffer = Buffer.isBuffer(bytes) ? bytes : Buffer.from(buffer, byteOffset, byteLength);
    this.view = new DataView(buffer, byteOffset, byteLength);
  }

  /** True when every byte was read. */
  get ended(): boolean {
    return this.at === this.buffer.length;
  }

  /** Passes a null; false when the next value is another. */
  skipNull(): boolean {
    if (this.buffer[this.at] !== 0xc0) return false;
    this.head();
    return true;
  }

  /** Passes this key; false when another one stands here. */
  skipKey(key: Uint8Array): boolean {
    const { at, buffer } = this;
    for (let i = 0; i < key.length; i++) if (buffer[at + i] !== key[i]) return false;
    this.head();
    this.at = at + key.length;
    return true;
  }

  /** Goes into a map; the number of its entries. */
  enterMap(depth: number): number {
    const head = this.head();
    const entries =
      (head & 0xf0) === 0x80 ? head & 0x0f : head === 0xde || head === 0xdf ? this.length(head - 0xdd) : -1;
    if (entries < 0) throw this.unreadable(this.at - 1);
    this.enter(entries * 2, depth);
    return entries;
  }

  /** Goes into a list; the number of its items. */
  enterList(depth: number): number {
    const head = this.head();
    const items = (head & 0xf0) === 0x90 ? head & 0x0f : head === 0xdc || head === 0xdd ? this.length(head - 0xdb) : -1;
    if (items < 0) throw this.unreadable(this.at - 1);
    this.enter(items, depth);
    return items;
  }

  /** The value at `at`, inside `depth` containers. */
  value(depth: number): Wire {
    const head = this.head();
    if (head <= 0x7f) return head;
    if (head >= 0xe0) return head - 0x100;
    if (head <= 0x8f) return this.map(head & 0x0f, depth);
    if (head <= 0x9f) return this.list(head & 0x0f, depth);
    if (head <= 0xbf) return this.text(head & 0x1f);
    switch (head) {
      case 0xc0:
        return null;
      case 0xc2:
        return false;
      case 0xc3:
        return true;
      case 0xc4:
      case 0xc5:
      case 0xc6:
        return this.binary(this.length(head - 0xc4));
      case 0xd9:
      case 0xda:
      case 0xdb:
        return this.text(this.length(head - 0xd9));
      case 0xdc:
      case 0xdd:
        return this.list(this.length(head - 0xdb), depth);
      case 0xde:
      case 0xdf:
        return this.map(this.length(head - 0xdd), depth);
      default:
        return this.number(head);
    }
  }

  private head(): number {
    if (++this.values > LIMITS.payloadValuesMax)
      throw new PayloadProblem(`more than ${LIMITS.payloadValuesMax} values`);
    if (this.at >= this.buffer.length) throw this.unreadable(this.at);
    return this.buffer[this.at++]!;
  }

  private unreadable(at: number): PayloadProblem {
    return new PayloadProblem(`unreadable value at byte ${at}`);
  }

  /** Offset of the next `bytes` bytes, which must be there. */
  private take(bytes: number): number {
    const start = this.at;
    this.at = start + bytes;
    if (this.at > this.buffer.length) throw new PayloadProblem(`a value runs past the end at byte ${start - 1}`);
    return start;
  }

  /** A length of one, two or four bytes. */
  private length(width: number): number {
    const start = this.take(1 << width);
    if (width === 0) return this.buffer[start]!;
    return width === 1 ? this.view.getUint16(start) : this.view.getUint32(start);
  }

  private number(head: number): number {
    switch (head) {
      case 0xca:
        return this.view.getFloat32(this.take(4));
      case 0xcb:
        return this.view.getFloat64(this.take(8));
      case 0xcc:
        return this.view.getUint8(this.take(1));
      case 0xcd:
        return this.view.getUint16(this.take(2));
      case 0xce:
        return this.view.getUint32(this.take(4));
      case 0xcf: {
        const at = this.take(8);
        return this.view.getUint32(at) * 2 ** 32 + this.view.getUint32(at + 4);
      }
      case 0xd0:
        return this.view.getInt8(this.take(1));
      case 0xd1:
        return this.view.getInt16(this.take(2));
      case 0xd2:
        return this.view.getInt32(this.take(4));
      case 0xd3: {
        const at = this.take(8);
        return this.view.getInt32(at) * 2 ** 32 + this.view.getUint32(at + 4);
      }
      default:
        throw this.unreadable(this.at - 1);
    }
  }

  private binary(bytes: number): Uint8Array {
    const start = this.take(bytes);
    return new Uint8Array(this.buffer.buffer, this.buffer.byteOffset + start, bytes);
  }

  private text(bytes: number): string {
    const start = this.take(bytes);
    if (bytes > SHORT_BYTES_MAX) return this.buffer.toString("utf8", start, this.at);
    let hash = bytes;
    for (let i = start; i < this.at; i++) {
      const byte = this.buffer[i]!;
      if (byte > 0x7f) return this.buffer.toString("utf8", start, this.at);
      hash = (Math.imul(hash, 31) + byte) | 0;
    }
    const slot = hash & (SLOTS - 1);
    const known = shortTexts[slot]!;
    if (known.length === bytes && this.spells(known, start)) return known;
    const made = this.buffer.toString("latin1", start, this.at);
    shortTexts[slot] = made;
    return made;
  }

  private spells(text: string, start: number): boolean {
    for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) !== this.buffer[start + i]) return false;
    return true;
  }

  /** Each child takes at least one byte, so a header cannot claim more than what is there. */
  private enter(children: number, depth: number): void {
    if (children > this.buffer.length - this.at)
      throw new PayloadProblem(`a container claims more than there is at byte ${this.at}`);
    if (children > 0 && depth >= LIMITS.payloadDepthMax)
      throw new PayloadProblem(`nested deeper than ${LIMITS.payloadDepthMax}`);
  }

  private list(items: number, depth: number): Wire[] {
    this.enter(items, depth);
    const list: Wire[] = [];
    for (let i = 0; i < items; i++) list.push(this.value(depth + 1));
    return list;
  }

  private map(entries: number, depth: number): WireMap {
    this.enter(entries * 2, depth);
    const map: WireMap = new Map();
    for (let i = 0; i < entries; i++) {
      const key = this.key();
      map.set(key, this.value(depth + 1));
    }
    return map;
  }

  private key(): string {
    const at = this.at;
    const head = this.head();
    if (head >= 0xa0 && head <= 0xbf) return this.text(head & 0x1f);
    if (head >= 0xd9 && head <= 0xdb) return this.text(this.length(head - 0xd9));
    throw new PayloadProblem(`a key that is not a string at byte ${at}`);
  }
}
