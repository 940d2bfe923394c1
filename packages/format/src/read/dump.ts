/** A file of frames as text, one line a record or gap: for people, for diffs, and for the dumps beside the golden files. */
import path from "node:path";
import { readRecords } from "./read-trajectory.js";
import type { ReadMode } from "./scan.js";

/**
 * Lines `seq @offset +bytes name digest {json}`. Binaries are hex, ids and log probabilities lists, NaN the text "NaN", keys in the order on disk.
 * Gaps stand where they are: `gap @offset +bytes reason`.
 */
export function* dumpRecords(filePath: string, mode: ReadMode): Generator<string, void, void> {
  for (const item of readRecords(filePath, path.basename(filePath), { mode })) {
    if (item.kind === "gap") {
      const { offset, bytes, reason } = item.gap;
      yield `gap @${offset} +${bytes} ${reason}`;
      continue;
    }
    const { seq, offset, bytes, digest } = item.place;
    const place = `${seq} @${offset} +${bytes - offset}`;
    const short = Buffer.from(digest).toString("hex").slice(0, 16);
    if (item.kind === "optional")
      yield `${place} type-0x${item.type.toString(16)} ${short} ${item.payload.toString("hex")}`;
    else yield `${place} ${item.named.name} ${short} ${JSON.stringify(plain(item.named.record))}`;
  }
}

/** The same data in what JSON can say. */
function plain(value: unknown): unknown {
  if (typeof value === "number") return Number.isFinite(value) ? value : String(value);
  if (value instanceof Float32Array || value instanceof Float64Array) {
    return { [value instanceof Float32Array ? "f32" : "f64"]: Array.from(value, plain) };
  }
  if (value instanceof Int32Array) return Array.from(value);
  if (value instanceof Uint8Array) return Buffer.from(value).toString("hex");
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  const copy = Object.create(null) as Record<string, unknown>;
  for (const [key, item] of Object.entries(value)) copy[key] = plain(item);
  return copy;
}
