/** Trajectories that should be below the given paths and are not: what was kept outside names them, or their writer left traces. */
import { basename, join, resolve, sep } from "node:path";
import {
  type AnchoredHead,
  missingTrajectory,
  TitoError,
  type TrajectoryVerdict,
  verifyTrajectory,
} from "@tito/format";

/**
 * A verdict for each. `found` are the trajectories below `paths`, `seen` their ids. A path that is itself a trajectory is asked for what concerns it alone;
 * where a path holds trajectories, is empty or is gone, every anchored one must be somewhere.
 */
export function findAbsent(
  paths: readonly string[],
  found: readonly string[],
  seen: ReadonlySet<string>,
  anchors: readonly AnchoredHead[],
): TrajectoryVerdict[] {
  const anchored = new Set(anchors.map(({ trajectory }) => trajectory).filter((id) => !seen.has(id)));
  const absent: TrajectoryVerdict[] = [];
  const parents: string[] = [];
  for (const path of paths) {
    const dir = resolve(path);
    if (found.includes(dir)) continue;
    const isBare = !found.some((each) => each.startsWith(dir + sep));
    const verdict = isBare
      ? judgeBare(
          path,
          anchors.filter(({ trajectory }) => trajectory === basename(dir)),
        )
      : null;
    if (verdict === null) parents.push(path);
    else if (!absent.some((other) => resolve(other.dir) === dir)) absent.push(verdict);
  }
  for (const { trajectory_id: id } of absent) anchored.delete(id);
  if (parents.length === 0) return absent;
  return [...absent, ...[...anchored].map((id) => missingTrajectory(join(parents[0]!, id), id, anchors))];
}

/** What an anchor or its writer's traces say of a directory without records. Null when nothing does. */
function judgeBare(path: string, own: readonly AnchoredHead[]): TrajectoryVerdict | null {
  try {
    return verifyTrajectory(path, { anchors: own });
  } catch (error) {
    if (TitoError.is(error) && error.code === "not_found") return null;
    throw error;
  }
}
