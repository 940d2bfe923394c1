/** Rows as bytes: JSONL lines and msgpack maps, of runs and of packed samples. Pure. */
import { Packr } from "msgpackr";
import type { PackedSample } from "./pack.js";
import type { MadeRun, MadeSample } from "./rollout-run.js";

const packr = new Packr({ useRecords: false, variableMapSize: true });

/** A run as one JSON line, in pieces, because one string for everything may be longer than a string can be. */
export function runToJsonl(run: MadeRun): Buffer[] {
  const head = JSON.stringify(run.head);
  const parts = [Buffer.from(`${head.slice(0, -1)},"samples":[`)];
  for (const [i, sample] of run.samples.entries()) parts.push(Buffer.from((i > 0 ? "," : "") + sampleToJson(sample)));
  parts.push(Buffer.from("]}\n"));
  return parts;
}

/** Key order is that of the schema. Typed arrays are joined as they are: float32 values print as the doubles they equal. */
function sampleToJson(sample: MadeSample): string {
  const { sample_index, trajectory_id, segments, tokens, loss_mask, logprobs, ...rest } = sample;
  const start = JSON.stringify({ sample_index, trajectory_id, segments }).slice(0, -1);
  const arrays = `"tokens":[${tokens.join()}],"loss_mask":[${loss_mask.join()}],"logprobs":[${logprobs.join()}]`;
  return `${start},${arrays},${JSON.stringify(rest).slice(1)}`;
}

export function packedToJsonl(row: PackedSample): Buffer[] {
  const { schema, tokens, loss_mask, logprobs, position_ids, parts } = row;
  const arrays = `"tokens":[${tokens.join()}],"loss_mask":[${loss_mask.join()}],"logprobs":[${logprobs.join()}]`;
  const ids = `"position_ids":[${position_ids.join()}]`;
  return [Buffer.from(`{"schema":${JSON.stringify(schema)},${arrays},${ids},"parts":${JSON.stringify(parts)}}\n`)];
}

/** A typed array as msgpack: numpy reads it with `frombuffer(data, dtype)`, without an extension hook. */
interface PackedArray {
  dtype: "<i4" | "<f4" | "<f8" | "|u1";
  shape: [number];
  data: Uint8Array;
}

function packArray(array: Int32Array | Uint8Array | Float32Array | Float64Array): PackedArray {
  const data = Buffer.from(array.buffer, array.byteOffset, array.byteLength);
  return { dtype: dtypeOf(array), shape: [array.length], data };
}

function dtypeOf(array: Int32Array | Uint8Array | Float32Array | Float64Array): PackedArray["dtype"] {
  if (array instanceof Int32Array) return "<i4";
  if (array instanceof Uint8Array) return "|u1";
  return array instanceof Float32Array ? "<f4" : "<f8";
}

/** A run as one msgpack map; a file is a plain sequence of such maps. */
export function runToMsgpack(run: MadeRun): Buffer[] {
  const samples = run.samples.map((sample) => ({
    ...sample,
    tokens: packArray(sample.tokens),
    loss_mask: packArray(sample.loss_mask),
    logprobs: packArray(sample.logprobs),
  }));
  return [Buffer.from(packr.pack({ ...run.head, samples }))];
}

export function packedToMsgpack(row: PackedSample): Buffer[] {
  const { tokens, loss_mask, logprobs, position_ids } = row;
  const arrays = { tokens: packArray(tokens), loss_mask: packArray(loss_mask), logprobs: packArray(logprobs) };
  return [Buffer.from(packr.pack({ ...row, ...arrays, position_ids: packArray(position_ids) }))];
}
