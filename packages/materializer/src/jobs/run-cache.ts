/** Assembled runs kept from pass one for pass two, up to a number of bytes; what does not fit is read again. */
import type { AssembledRun } from "../build/assemble.js";

/** Bytes that all threads together may keep. Small jobs are read once; large ones stay within flat memory. */
export const CACHE_BYTES_MAX = 64 << 20;
const TURN_BYTES = 4096;

/**
 * First come, first kept: pass two goes through the runs in the order of pass one, where a cache that replaces the oldest entry
 * would never be hit. An entry leaves when it is taken.
 */
export class RunCache {
  private readonly runs = new Map<number, { run: AssembledRun; bytes: number }>();
  private bytes = 0;

  constructor(private readonly bytesMax: number) {}

  offer(slot: number, run: AssembledRun): void {
    const bytes = sizeOf(run);
    if (this.bytes + bytes > this.bytesMax) return;
    this.runs.set(slot, { run, bytes });
    this.bytes += bytes;
  }

  /** The run of this slot, null when it was not kept. */
  take(slot: number): AssembledRun | null {
    const kept = this.runs.get(slot);
    if (!kept) return null;
    this.runs.delete(slot);
    this.bytes -= kept.bytes;
    return kept.run;
  }
}

/** About what a run holds: lines, ids and logprobs, and messages and settings of each turn. */
function sizeOf(run: AssembledRun): number {
  let bytes = 0;
  for (const { evidence, built } of run.trajectories) {
    for (const sample of built.samples) bytes += sample.line.tokens.byteLength;
    for (const turn of evidence.turns) {
      bytes +=
        TURN_BYTES + turn.prompt_suffix.byteLength + turn.sampled_ids.byteLength + (turn.logprobs?.byteLength ?? 0);
    }
  }
  return bytes;
}
