/**
 * Arrays of numbers as bytes and back, little-endian, bit-exact. Ids are int32; logprobs are float32 when every value survives, else float64.
 * Nothing is narrowed silently: a value that does not fit is refused.
 */
import { TitoError } from "./errors.js";

const LITTLE_ENDIAN = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;

type NumberArray = Int32Array | Float32Array | Float64Array;

/** The little-endian bytes of an array; a view, not a copy. */
export function littleEndianBytes(array: NumberArray): Uint8Array {
  requireLittleEndian();
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}

/** Bytes → int32 array (a copy, aligned; not alone in its buffer). Null when the length is not a multiple of 4. */
export function int32FromBytes(bytes: Uint8Array): Int32Array | null {
  requireLittleEndian();
  if (bytes.length % 4 !== 0) return null;
  const copy = alignedCopy(bytes);
  return new Int32Array(copy.buffer, copy.byteOffset, bytes.length / 4);
}

export function float32FromBytes(bytes: Uint8Array): Float32Array | null {
  requireLittleEndian();
  if (bytes.length % 4 !== 0) return null;
  const copy = alignedCopy(bytes);
  return new Float32Array(copy.buffer, copy.byteOffset, bytes.length / 4);
}

export function float64FromBytes(bytes: Uint8Array): Float64Array | null {
  requireLittleEndian();
  if (bytes.length % 8 !== 0) return null;
  const copy = alignedCopy(bytes);
  return new Float64Array(copy.buffer, copy.byteOffset, bytes.length / 8);
}

/** Arrays that are read one after the other lie in one piece of memory: a piece of its own costs more than what most of them hold. */
const SLAB_BYTES = 64 * 1024;
let slab = new Uint8Array(0);
let slabUsed = 0;

function alignedCopy(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  if (bytes.length > SLAB_BYTES / 4) return new Uint8Array(bytes);
  if (slabUsed + bytes.length > slab.length) {
    slab = new Uint8Array(SLAB_BYTES);
    slabUsed = 0;
  }
  const copy = slab.subarray(slabUsed, slabUsed + bytes.length);
  copy.set(bytes);
  slabUsed += Math.ceil(bytes.length / 8) * 8;
  return copy;
}

function requireLittleEndian(): void {
  if (!LITTLE_ENDIAN) {
    throw new TitoError(
      "unsupported",
      "this machine is big-endian; segment files are read and written on little-endian ones",
    );
  }
}

/** Token ids as int32. Throws `format_invalid` when one is not an integer in [0, 2^31). */
export function toTokenIds(values: ArrayLike<number>, what = "token ids"): Int32Array {
  const ids = new Int32Array(values.length);
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!;
    if (!Number.isInteger(value) || value < 0 || value > 0x7fffffff) {
      throw new TitoError("format_invalid", `${what}[${i}] = ${value} is not an int32 token id`);
    }
    ids[i] = value;
  }
  return ids;
}

/** The narrowest array that holds every value bit for bit: float32 when all survive (NaN does), else float64. */
export function toLogprobs(values: ArrayLike<number>): Float32Array | Float64Array {
  const narrow = new Float32Array(values.length);
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!;
    narrow[i] = value;
    if (!Object.is(narrow[i], value)) return Float64Array.from(values);
  }
  return narrow;
}
