/** The verdict on a trajectory of which no file with records is left: an anchor outside names it, or what its writer kept beside its files is still there. */
import path from "node:path";
import { COMPLETE_FILE, SEGMENTS_DIR } from "../disk/trajectory-dir.js";
import { listFiles, readNames } from "../read/read-trajectory.js";
import type { AnchoredHead } from "../record/anchors.js";
import { TitoError } from "../record/errors.js";
import { Findings, type TrajectoryVerdict } from "./verify-types.js";

/** What a writer makes beside journals, segments and manifest. */
const TRACE = new RegExp(String.raw`^(?:writer-\d+\.lock|unsound|ballast|${COMPLETE_FILE}|${SEGMENTS_DIR})$`);

/**
 * Null when there are files to verify. Throws `not_found` when nothing says that a trajectory was ever here: no trace of a writer, no anchor that names the
 * directory, and not all anchors of one trajectory.
 */
export function findMissing(dir: string, anchors: readonly AnchoredHead[]): TrajectoryVerdict | null {
  try {
    listFiles(dir);
    return null;
  } catch (error) {
    if (!TitoError.is(error) || error.code !== "not_found") throw error;
    const name = path.basename(path.resolve(dir));
    const named = anchors.some(({ trajectory }) => trajectory === name) ? name : onlyOneOf(anchors);
    const traces = readNames(dir).filter((entry) => TRACE.test(entry));
    if (named === null && traces.length === 0) throw error;
    return missingTrajectory(dir, named ?? name, anchors);
  }
}

function onlyOneOf(anchors: readonly AnchoredHead[]): string | null {
  const ids = new Set(anchors.map(({ trajectory }) => trajectory));
  return ids.size === 1 ? anchors[0]!.trajectory : null;
}

/** The verdict on trajectory `id`, which should be in `dir` and is not. `head` is the furthest that an anchor names, null without one. */
export function missingTrajectory(dir: string, id: string, anchors: readonly AnchoredHead[]): TrajectoryVerdict {
  const own = anchors.filter(({ trajectory }) => trajectory === id);
  const head = own.reduce<AnchoredHead | null>((last, anchor) => (isAfter(anchor, last) ? anchor : last), null);
  const left = readNames(dir).sort();
  const findings = new Findings();
  const place = { file: "journal.seg", offset: head?.bytes ?? 0, seq: head?.seq ?? 0 };
  const rest = left.length === 0 ? "nothing of it is here" : `only ${left.slice(0, 5).join(", ")} is here`;
  const anchored = `trajectory ${id} is anchored up to record ${head?.seq} of boot ${head?.boot}; ${rest}`;
  const traced = `no journal, segment or manifest of trajectory ${id} is left; ${rest}`;
  findings.add("incomplete", "trajectory_missing", place, head === null ? traced : anchored);
  return {
    dir,
    trajectory_id: id,
    status: "missing",
    findings: findings.list,
    findings_left_off: 0,
    counts: { files: 0, bytes: 0, records: 0, turns: 0, sampled_tokens: 0, calls: 0, gaps: 0 },
    capture_loss: null,
    head,
  };
}

function isAfter(one: AnchoredHead, other: AnchoredHead | null): boolean {
  return other === null || one.boot > other.boot || (one.boot === other.boot && one.seq > other.seq);
}
