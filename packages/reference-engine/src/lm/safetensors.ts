import { z } from "zod";
import { invalidModel, parseJson } from "./config.js";

/** One named float32 array of a safetensors file, row-major. */
export interface NamedTensor {
  readonly shape: readonly number[];
  readonly data: Float32Array;
}

const HEADER_BYTES_MAX = 1 << 20;
const entrySchema = z.object({
  dtype: z.literal("F32"),
  shape: z
    .array(
      z
        .int()
        .min(1)
        .max(1 << 24),
    )
    .min(1)
    .max(2),
  data_offsets: z.tuple([z.int().min(0), z.int().min(0)]),
});

/**
 * Reads a safetensors file: u64 little-endian header length, JSON header, then the arrays.
 * Only float32 is accepted. Throws `bundle_invalid` when sizes and shapes disagree.
 */
export function readSafetensors(bytes: Uint8Array, file: string): Map<string, NamedTensor> {
  if (bytes.byteLength < 8) throw invalidModel(file, "shorter than a safetensors header");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const headerBytes = Number(view.getBigUint64(0, true));
  if (headerBytes > HEADER_BYTES_MAX || 8 + headerBytes > bytes.byteLength)
    throw invalidModel(file, "header length out of range");
  const header = parseJson(new TextDecoder().decode(bytes.subarray(8, 8 + headerBytes)), file);
  const entries = z.record(z.string(), z.unknown()).safeParse(header);
  if (!entries.success) throw invalidModel(file, "the header is not an object");
  const body = bytes.subarray(8 + headerBytes);
  const tensors = new Map<string, NamedTensor>();
  for (const [name, value] of Object.entries(entries.data)) {
    if (name === "__metadata__") continue;
    const entry = entrySchema.safeParse(value);
    if (!entry.success)
      throw invalidModel(file, `tensor ${name}: ${z.prettifyError(entry.error).replaceAll("\n", " ")}`);
    const [start, end] = entry.data.data_offsets;
    const floats = entry.data.shape.reduce((product, side) => product * side, 1);
    if (end > body.byteLength || end - start !== floats * 4)
      throw invalidModel(file, `tensor ${name}: offsets and shape disagree`);
    // Copied, because a float32 view needs an address that is a multiple of four (and `slice` of a Buffer does not copy).
    const copy = new Uint8Array(end - start);
    copy.set(body.subarray(start, end));
    tensors.set(name, { shape: entry.data.shape, data: new Float32Array(copy.buffer) });
  }
  return tensors;
}

/** Writes a safetensors file that transformers, vLLM and llama.cpp's converter read; tensors in the given order. */
export function writeSafetensors(tensors: ReadonlyMap<string, NamedTensor>): Uint8Array {
  let offset = 0;
  const entries: [string, unknown][] = [["__metadata__", { format: "pt" }]];
  for (const [name, { shape, data }] of tensors) {
    entries.push([name, { dtype: "F32", shape, data_offsets: [offset, offset + data.byteLength] }]);
    offset += data.byteLength;
  }
  const json = JSON.stringify(Object.fromEntries(entries));
  const header = new TextEncoder().encode(json.padEnd(Math.ceil(json.length / 8) * 8));
  const bytes = new Uint8Array(8 + header.byteLength + offset);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(header.byteLength), true);
  bytes.set(header, 8);
  let at = 8 + header.byteLength;
  for (const { data } of tensors.values()) {
    bytes.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), at);
    at += data.byteLength;
  }
  return bytes;
}
