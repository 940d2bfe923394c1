/** Verifies a trajectory, alone or while it is read, again and again until it stood still. */
import { COMPLETE_FILE } from "../disk/trajectory-dir.js";
import type { TrajectoryLog } from "../read/trajectory-log.js";
import { slimRecord } from "./slim-record.js";
import { Verification } from "./verification.js";
import { findMissing } from "./verify-missing.js";
import { sizesIn } from "./verify-sizes.js";
import { Findings, type TrajectoryVerdict, type VerifyOptions } from "./verify-types.js";

/** How often a trajectory that was written meanwhile is read again. */
const READS_MAX = 5;

/**
 * Verifies the trajectory in `dir`. Throws `not_found` when nothing says that one was ever there, and `io` when a file can not be read; all else is a finding.
 * One that is being written is read again until it stood still: files that are read at different times contradict each other.
 */
export function verifyTrajectory(dir: string, options: VerifyOptions = {}): TrajectoryVerdict {
  const missing = findMissing(dir, options.anchors ?? []);
  return missing ?? readStill(dir, () => new Verification(dir, options, slimRecord)).verdict;
}

/** Reads a trajectory as `readTrajectory` does in `salvage` mode, and verifies it on the way: nothing is read twice. Throws as `verifyTrajectory` does. */
export function readVerified(dir: string): { log: TrajectoryLog; verdict: TrajectoryVerdict } {
  return readStill(dir, () => new Verification(dir, {}, null));
}

function readStill(dir: string, begin: () => Verification): { log: TrajectoryLog; verdict: TrajectoryVerdict } {
  for (let read = 1; ; read++) {
    const before = sizesIn(dir);
    const { log, verdict } = begin().run();
    if (before === null || before === sizesIn(dir)) return { log, verdict };
    if (read < READS_MAX) continue;
    const findings = new Findings();
    findings.addFile("incomplete", "not_sealed", COMPLETE_FILE, "it is being written, faster than it can be read");
    return { log, verdict: { ...verdict, findings: findings.list, findings_left_off: 0, status: findings.status } };
  }
}
