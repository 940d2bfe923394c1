/**
 * A payload: one msgpack map, written and read by msgpackr. Bytes from a file are first walked by a strict guard that allocates nothing, so that
 * msgpackr (which honours record and typed-array extensions, and grows arrays by what a header claims) only ever sees plain, bounded data.
 * Maps are read as `Map`: keys such as `__proto__` are data like any other.
 */
import { Packr, Unpackr } from "msgpackr";
import { TitoError } from "./errors.js";
import { LIMITS } from "./limits.js";

/** What a payload is made of on both sides. */
export type Wire = null | boolean | number | string | Uint8Array | Wire[] | WireMap;
export interface WireMap extends Map<string, Wire> {}

const OPTIONS = {
  useRecords: false,
  mapsAsObjects: false,
  moreTypes: false,
  structuredClone: false,
  variableMapSize: true,
} as const;
const packr = new Packr(OPTIONS);
const unpackr = new Unpackr({ ...OPTIONS, int64AsType: "number" });

export function packPayload(map: WireMap): Uint8Array {
  return packr.pack(map);
}

/** Reads a payload. `where` (file, offset, seq) goes into the error. Throws `format_invalid` for anything but one well-formed, bounded map. */
export function unpackPayload(bytes: Uint8Array, where: string): WireMap {
  const problem = findPayloadProblem(bytes);
  if (problem !== null) throw new TitoError("format_invalid", `${where}: ${problem}`);
  try {
    return unpackr.unpack(bytes) as WireMap;
  } catch (cause) {
    throw new TitoError("format_invalid", `${where}: the payload is not readable msgpack`, { cause });
  }
}

/**
 * Why these bytes are not one bounded msgpack map of plain values, or null when they are. Walks without recursion and without allocation beyond
 * the depth limit. Plain: nil, booleans, numbers, strings, binaries, arrays, maps with string keys; no extension types.
 */
export function findPayloadProblem(bytes: Uint8Array): string | null {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const head = bytes[0];
  if (head === undefined || !isMapByte(head)) return "the payload is not a map";
  /** Items still to come, and whether every second one is a key, for each open container. */
  const left = new Float64Array(LIMITS.payloadDepthMax + 1);
  const keyed = new Uint8Array(LIMITS.payloadDepthMax + 1);
  let depth = 0;
  left[0] = 1;
  let at = 0;
  let values = 0;
  while (depth >= 0) {
    if (left[depth] === 0) {
      depth--;
      continue;
    }
    if (++values > LIMITS.payloadValuesMax) return `more than ${LIMITS.payloadValuesMax} values`;
    const isKey = keyed[depth] === 1 && left[depth]! % 2 === 0;
    left[depth] = left[depth]! - 1;
    const item = readItem(view, at);
    if (item === null) return `unreadable value at byte ${at}`;
    if (isKey && !item.text) return `a key that is not a string at byte ${at}`;
    at += item.bytes;
    if (at > bytes.length) return `a value runs past the end at byte ${at - item.bytes}`;
    if (item.children === 0) continue;
    // each child takes at least one byte, so a header cannot claim more than what is there
    if (item.children > bytes.length - at) return `a container claims more than there is at byte ${at}`;
    if (++depth > LIMITS.payloadDepthMax) return `nested deeper than ${LIMITS.payloadDepthMax}`;
    left[depth] = item.children;
    keyed[depth] = item.map ? 1 : 0;
  }
  return at === bytes.length ? null : `${bytes.length - at} bytes after the map`;
}

interface Item {
  /** Bytes of the value itself; children follow. */
  bytes: number;
  children: number;
  map: boolean;
  text: boolean;
}

/** The one value at `at`; null when its type is unknown or an extension, or its head is cut off. */
function readItem(view: DataView, at: number): Item | null {
  if (at >= view.byteLength) return null;
  const head = view.getUint8(at);
  if (head <= 0x7f || head >= 0xe0 || head === 0xc0 || head === 0xc2 || head === 0xc3) return scalar(1);
  if (head <= 0x8f) return { bytes: 1, children: (head & 0x0f) * 2, map: true, text: false };
  if (head <= 0x9f) return { bytes: 1, children: head & 0x0f, map: false, text: false };
  if (head <= 0xbf) return { bytes: 1 + (head & 0x1f), children: 0, map: false, text: true };
  const fixed = FIXED_BYTES[head];
  if (fixed !== undefined) return scalar(fixed);
  const width = LENGTH_WIDTH[head];
  if (width === undefined || at + 1 + width > view.byteLength) return null;
  const length = width === 1 ? view.getUint8(at + 1) : width === 2 ? view.getUint16(at + 1) : view.getUint32(at + 1);
  if (head >= 0xdc) {
    const map = head >= 0xde;
    return { bytes: 1 + width, children: map ? length * 2 : length, map, text: false };
  }
  return { bytes: 1 + width + length, children: 0, map: false, text: head >= 0xd9 };
}

function scalar(bytes: number): Item {
  return { bytes, children: 0, map: false, text: false };
}

/** float32, float64, uint8-64, int8-64: head byte → bytes with the head. */
const FIXED_BYTES: Readonly<Record<number, number>> = {
  202: 5,
  203: 9,
  204: 2,
  205: 3,
  206: 5,
  207: 9,
  208: 2,
  209: 3,
  210: 5,
  211: 9,
};

/** bin8-32, str8-32, array16-32, map16-32: head byte → width of the length. */
const LENGTH_WIDTH: Readonly<Record<number, number>> = {
  196: 1,
  197: 2,
  198: 4,
  217: 1,
  218: 2,
  219: 4,
  220: 2,
  221: 4,
  222: 2,
  223: 4,
};

function isMapByte(head: number): boolean {
  return (head >= 0x80 && head <= 0x8f) || head === 0xde || head === 0xdf;
}
