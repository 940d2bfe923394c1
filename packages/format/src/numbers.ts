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

/** Bytes → int32 array (a copy, aligned). Null when the length is not a multiple of 4. */
export function int32FromBytes(bytes: Uint8Array): Int32Array | null {
  requireLittleEndian();
  return bytes.length % 4 === 0 ? new Int32Array(alignedCopy(bytes)) : null;
}

export function float32FromBytes(bytes: Uint8Array): Float32Array | null {
  requireLittleEndian();
  return bytes.length % 4 === 0 ? new Float32Array(alignedCopy(bytes)) : null;
}

export function float64FromBytes(bytes: Uint8Array): Float64Array | null {
  requireLittleEndian();
  return bytes.length % 8 === 0 ? new Float64Array(alignedCopy(bytes)) : null;
}

function alignedCopy(bytes: Uint8Array): ArrayBuffer {
  const { buffer, byteOffset, byteLength } = bytes;
  return buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer;
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
