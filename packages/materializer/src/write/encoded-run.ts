/** Runs as a worker may hand them over: with their arrays, or already as bytes. Pure. */
import { TitoError } from "@tito/format";
import { runToJsonl, runToMsgpack } from "./encode.js";
import type { MadeRun } from "./rollout-run.js";

export const FORMATS = ["jsonl", "parquet", "msgpack"] as const;
export type Format = (typeof FORMATS)[number];

/** A run that a worker already turned into bytes. */
export interface EncodedRun {
  encoded: Uint8Array[];
}

export type SinkInput = MadeRun | EncodedRun;

export function encodeRun(run: MadeRun, format: Format): EncodedRun {
  return { encoded: format === "jsonl" ? runToJsonl(run) : runToMsgpack(run) };
}

/** The run with its arrays; a format that needs them never asks workers to encode. */
export function madeOnly(run: SinkInput): MadeRun {
  if ("encoded" in run) throw new TitoError("internal", "this output needs runs with their arrays");
  return run;
}
