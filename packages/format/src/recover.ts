/** What earlier boots of a trajectory left on disk, read before a new boot writes its first byte. Nothing of it is touched. */
import { TitoError } from "./errors.js";
import { rebuildLines } from "./lines.js";
import { readTrajectory } from "./read-trajectory.js";
import type { Recovered } from "./writer-types.js";

/** The trajectory in `dir` as far as it can be read; null when nothing was written yet. */
export function recover(dir: string): Recovered | null {
  try {
    const log = readTrajectory(dir, { mode: "salvage" });
    return { log, lines: rebuildLines(log) };
  } catch (error) {
    // a boot that died before it wrote anything leaves nothing to recover
    if (TitoError.is(error) && error.code === "not_found") return null;
    throw error;
  }
}
