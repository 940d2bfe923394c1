/**
 * Field readers and writers: how one value of a record becomes a msgpack value and comes back. The same check runs on both sides, so that
 * what could not be read is never written. A problem is a `format_invalid` error that names the field; the caller adds file, offset and seq.
 */
import { TitoError } from "./errors.js";
import { LIMITS } from "./limits.js";
import { float32FromBytes, float64FromBytes, int32FromBytes, littleEndianBytes } from "./numbers.js";
import { type PayloadReader, packedKey, type Wire, type WireMap } from "./payload-reader.js";

/** One kind of field. `write` checks like `read` does. `path` is the field's name, with indexes. */
export interface Field<T> {
  read(wire: Wire | undefined, path: string): T;
  write(value: T, path: string): Wire;
  /** Set for fields whose key is left out when the value is undefined. */
  optional?: boolean;
  /**
   * `read` straight from the payload, for fields that hold others: no map is made of a record whose keys stand as `write` puts them.
   * Throws whatever it likes when they do not, or when anything is wrong: then {@link read} says what.
   */
  take?(from: PayloadReader, depth: number): T;
}

/** The next value of a payload, the short way when the field knows one. */
export function takeField<T>(field: Field<T>, from: PayloadReader, depth: number): T {
  return field.take === undefined ? field.read(from.value(depth), "") : field.take(from, depth);
}

/** The error of every check here. */
export function invalid(path: string, expected: string, found: unknown): TitoError {
  return new TitoError("format_invalid", `${path} is not ${expected} (${describe(found)})`);
}

function describe(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (typeof value === "string") return `a string of ${value.length} characters`;
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  return Array.isArray(value) ? "an array" : `a ${value.constructor?.name ?? "value"}`;
}

/** A field whose value is the same on both sides, guarded by one check. */
function same<T extends Wire>(expected: string, ok: (value: unknown) => boolean): Field<T> {
  const check = (value: unknown, path: string): T => {
    if (!ok(value)) throw invalid(path, expected, value);
    return value as T;
  };
  return { read: check, write: check };
}

/** Text of at most `bytesMax` UTF-8 bytes. */
function text(bytesMax: number): Field<string> {
  return same(`text of at most ${bytesMax} bytes`, (value) => {
    if (typeof value !== "string" || value.length > bytesMax) return false;
    return value.length * 3 <= bytesMax || Buffer.byteLength(value) <= bytesMax;
  });
}

export const name = text(LIMITS.nameBytesMax);
export const detail = text(LIMITS.detailBytesMax);
export const longText = text(LIMITS.textBytesMax);
export const flag: Field<boolean> = same("true or false", (value) => typeof value === "boolean");

/** A whole number from 0 to 2^53 - 1. */
export const count: Field<number> = same(
  "a whole number",
  (value) => Number.isSafeInteger(value) && (value as number) >= 0,
);
export const tokenId: Field<number> = same("a token id", isTokenId);

function isTokenId(value: unknown): boolean {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= 0x7fffffff;
}

/** A whole number or milliseconds with a fraction, as clocks give them. */
export const millis: Field<number> = same(
  "a time in milliseconds",
  (value) => typeof value === "number" && Number.isFinite(value),
);

export function oneOf<const T extends string>(values: readonly T[]): Field<T> {
  return same(`one of ${values.join(", ")}`, (value) => values.includes(value as T));
}

export function nullable<T>(field: Field<T>): Field<T | null> {
  return {
    read: (wire, path) => (wire === null ? null : field.read(wire, path)),
    write: (value, path) => (value === null ? null : field.write(value, path)),
    take: (from, depth) => (from.skipNull() ? null : takeField(field, from, depth)),
  };
}

/** A field that may be missing: absent and null are kept apart. */
export function optional<T>(field: Field<T>): Field<T | undefined> {
  return {
    optional: true,
    read: (wire, path) => (wire === undefined ? undefined : field.read(wire, path)),
    write: (value, path) => field.write(value as T, path),
    take: (from, depth) => takeField(field, from, depth),
  };
}

export function list<T>(field: Field<T>, itemsMax: number): Field<T[]> {
  const check = (value: unknown, path: string): void => {
    if (!Array.isArray(value) || value.length > itemsMax) throw invalid(path, `a list of at most ${itemsMax}`, value);
  };
  return {
    read(wire, path) {
      check(wire, path);
      return (wire as Wire[]).map((item, index) => field.read(item, `${path}[${index}]`));
    },
    write(value, path) {
      check(value, path);
      return value.map((item, index) => field.write(item, `${path}[${index}]`));
    },
    take(from, depth) {
      const items = from.enterList(depth);
      if (items > itemsMax) throw invalid("", `a list of at most ${itemsMax}`, null);
      const list: T[] = [];
      for (let i = 0; i < items; i++) list.push(takeField(field, from, depth + 1));
      return list;
    },
  };
}

/** Bytes; `length` when they must have exactly that many. Read as a copy, so that the file's buffer is not kept alive. */
export function bytes(length?: number): Field<Uint8Array> {
  const expected = length === undefined ? "bytes" : `${length} bytes`;
  const check = (value: unknown, path: string): Uint8Array => {
    if (!(value instanceof Uint8Array) || (length !== undefined && value.length !== length))
      throw invalid(path, expected, value);
    return value;
  };
  return { read: (wire, path) => Buffer.from(check(wire, path)), write: check };
}

export const digest = bytes(32);

/** Token ids as little-endian int32 bytes. Negative ids are refused on both sides. */
export const ids: Field<Int32Array> = {
  read(wire, path) {
    const array = wire instanceof Uint8Array ? int32FromBytes(wire) : null;
    if (array === null) throw invalid(path, "int32 ids", wire);
    return checkIds(array, path);
  },
  write(value, path) {
    if (!(value instanceof Int32Array)) throw invalid(path, "int32 ids", value);
    return littleEndianBytes(checkIds(value, path));
  },
};

function checkIds(array: Int32Array, path: string): Int32Array {
  if (array.length > LIMITS.idsMax) throw invalid(path, `at most ${LIMITS.idsMax} ids`, array);
  if (signUnion(array) < 0) {
    const at = array.findIndex((id) => id < 0);
    throw invalid(`${path}[${at}]`, "a token id", array[at]);
  }
  return array;
}

/** All ids in one: negative when any id is. Eight a step, since this loop is most of what reading a long prompt costs. */
function signUnion(array: Int32Array): number {
  let union = 0;
  let i = 0;
  for (; i + 8 <= array.length; i += 8) {
    union |= array[i]! | array[i + 1]! | array[i + 2]! | array[i + 3]!;
    union |= array[i + 4]! | array[i + 5]! | array[i + 6]! | array[i + 7]!;
  }
  for (; i < array.length; i++) union |= array[i]!;
  return union;
}

/** Log probabilities: a map {f32: bytes} or {f64: bytes}, so that the width is said and not guessed. */
export const logprobs: Field<Float32Array | Float64Array> = {
  read(wire, path) {
    if (!(wire instanceof Map)) throw invalid(path, "log probabilities", wire);
    const narrow = wire.get("f32");
    const wide = wire.get("f64");
    const array =
      narrow instanceof Uint8Array && wide === undefined
        ? float32FromBytes(narrow)
        : wide instanceof Uint8Array && narrow === undefined
          ? float64FromBytes(wide)
          : null;
    if (array === null) throw invalid(path, "log probabilities", wire);
    return array;
  },
  write(value, path) {
    const width = value instanceof Float32Array ? "f32" : value instanceof Float64Array ? "f64" : null;
    if (width === null || value.length > LIMITS.idsMax) throw invalid(path, "log probabilities", value);
    return new Map([[width, littleEndianBytes(value)]]);
  },
};

/** Text keys and text values. The object that is read has no prototype. */
export const textMap: Field<Record<string, string>> = {
  read(wire, path) {
    if (!(wire instanceof Map)) throw invalid(path, "a map of texts", wire);
    const object = emptyObject<string>();
    for (const [key, value] of wire) object[key] = detail.read(value, `${path}.${key}`);
    return object;
  },
  write(value, path) {
    const map: WireMap = new Map();
    for (const [key, item] of Object.entries(value)) map.set(key, detail.write(item, `${path}.${key}`));
    return map;
  },
};

/** JSON data of any shape (sampling fields). Objects that are read have no prototype; depth is bounded. */
export const jsonMap: Field<Record<string, unknown>> = {
  read(wire, path) {
    if (!(wire instanceof Map)) throw invalid(path, "a map", wire);
    return readJson(wire, path) as Record<string, unknown>;
  },
  write(value, path) {
    const wire = writeJson(value, path, 0);
    if (!(wire instanceof Map)) throw invalid(path, "a map", value);
    return wire;
  },
};

function readJson(wire: Wire, path: string): unknown {
  if (Array.isArray(wire)) return wire.map((item) => readJson(item, path));
  if (!(wire instanceof Map)) return wire;
  const object = emptyObject<unknown>();
  for (const [key, value] of wire) object[key] = readJson(value, path);
  return object;
}

function writeJson(value: unknown, path: string, depth: number): Wire {
  if (depth > LIMITS.payloadDepthMax / 2) throw invalid(path, "data of bounded depth", value);
  if (value === null || typeof value === "string" || typeof value === "boolean" || typeof value === "number")
    return value;
  if (Array.isArray(value)) return value.map((item) => writeJson(item, path, depth + 1));
  if (typeof value !== "object") throw invalid(path, "JSON data", value);
  const map: WireMap = new Map();
  for (const [key, item] of Object.entries(value)) {
    if (item !== undefined) map.set(key, writeJson(item, `${path}.${key}`, depth + 1));
  }
  return map;
}

/** An object that inherits nothing: a key named `__proto__` is a key. */
function emptyObject<T>(): Record<string, T> {
  return Object.create(null) as Record<string, T>;
}

/** A record with named fields. Unknown keys are skipped when read; a missing one is an error unless its field is optional. */
export function record<T extends object>(fields: { [K in keyof T]-?: Field<T[K]> }): Field<T> {
  const entries = Object.entries(fields) as [string, Field<unknown>][];
  const keys = entries.map(([key]) => packedKey(key));
  const join = (path: string, key: string): string => (path === "" ? key : `${path}.${key}`);
  // A record mostly stands at the same place: its fields' names are joined once a place, not once a read.
  let place = "";
  let names = entries.map(([key]) => key);
  const namesAt = (path: string): string[] => {
    if (path !== place) {
      place = path;
      names = entries.map(([key]) => join(path, key));
    }
    return names;
  };
  return {
    read(wire, path) {
      if (!(wire instanceof Map)) throw invalid(path || "the record", "a map", wire);
      const out: Record<string, unknown> = {};
      const paths = namesAt(path);
      for (let i = 0; i < entries.length; i++) {
        const [key, field] = entries[i]!;
        const value = field.read(wire.get(key), paths[i]!);
        if (value !== undefined) out[key] = value;
      }
      return out as T;
    },
    write(value, path) {
      if (typeof value !== "object" || value === null) throw invalid(path || "the record", "an object", value);
      const map: WireMap = new Map();
      const paths = namesAt(path);
      for (let i = 0; i < entries.length; i++) {
        const [key, field] = entries[i]!;
        const item = (value as Record<string, unknown>)[key];
        if (item === undefined && field.optional) continue;
        map.set(key, field.write(item, paths[i]!));
      }
      return map;
    },
    take(from, depth) {
      let left = from.enterMap(depth);
      const out: Record<string, unknown> = {};
      for (let i = 0; i < entries.length; i++) {
        const [key, field] = entries[i]!;
        if (left > 0 && from.skipKey(keys[i]!)) {
          out[key] = takeField(field, from, depth + 1);
          left--;
        } else if (!field.optional) throw invalid(key, "where it is written", undefined);
      }
      if (left > 0) throw invalid("", "a record without other keys", null);
      return out as T;
    },
  };
}
