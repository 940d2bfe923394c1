/** Replies in the shapes that engines document, as small as they can be, and what a collector makes of them. */

import { Collector, type Sampled } from "../../src/sample/sampled.js";
import type { ChunkReader } from "../../src/sample/sent-call.js";

export const ids = (...values: number[]): Int32Array => Int32Array.from(values);

/** All pieces of one reply to these prompt ids. */
export function collected(reader: ChunkReader, pieces: readonly unknown[], sent: Int32Array | null): Sampled {
  const collector = new Collector(sent);
  for (const piece of pieces) collector.add(reader(piece));
  return collector.result();
}

/** The evidence as plain lists. */
export function plain(sampled: Sampled): Record<string, unknown> {
  return {
    prompt: [...(sampled.promptIds ?? [])],
    ids: [...sampled.ids],
    logprobs: sampled.logprobs === null ? null : [...sampled.logprobs],
    finish: sampled.finish,
    stop: sampled.stopReason,
    defects: sampled.defects,
    versions: sampled.versions,
  };
}
