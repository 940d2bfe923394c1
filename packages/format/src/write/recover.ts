/** What earlier boots of a trajectory left on disk, read before a new boot writes its first byte. Nothing of it is touched. */
import fs from "node:fs";
import path from "node:path";
import { closeQuietly, errorCode } from "../disk/disk.js";
import {
  type HeldDir,
  markUnsound,
  partsOnDisk,
  segmentOfName,
  type TrajectoryDir,
  UNSOUND_FILE,
} from "../disk/trajectory-dir.js";
import { rebuildLines } from "../read/lines.js";
import { listFiles, NEVER_OPENS, readTrajectory } from "../read/read-trajectory.js";
import type { TrajectoryLog } from "../read/trajectory-log.js";
import { TitoError } from "../record/errors.js";
import type { Durability } from "./frame-file.js";
import type { Recovered } from "./writer-types.js";

/**
 * Syncs every file of a trajectory. A process that died had synced what it released, but wrote more: that is still read back, and a new boot
 * builds on it, so it must not go with the power afterwards. Throws the system error; what can not be opened by anybody is left to the reader to tell.
 */
export async function makeDurable(dir: TrajectoryDir): Promise<void> {
  const { root, segments } = dir;
  const { journals, segments: parts } = listFiles(root.path, root.disk);
  for (const name of journals) await syncFile(root, name);
  for (const name of parts) await syncFile(segments, name);
  await segments.sync();
  await root.sync();
}

async function syncFile(dir: HeldDir, name: string): Promise<void> {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = fs.constants;
  let fd: number;
  try {
    fd = dir.disk.open(dir.at(name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  } catch (error) {
    // the reader can not open it either, so that nothing is built on it
    if (NEVER_OPENS.has(errorCode(error) ?? "")) return;
    throw error;
  }
  try {
    await dir.disk.fdatasync(fd);
  } catch (error) {
    // a planted pipe has nothing to sync
    if (errorCode(error) !== "EINVAL") throw error;
  } finally {
    closeQuietly(dir.disk, fd);
  }
}

/** A device that failed says so once: the next sync would answer that all is well, and the pages would still be read from memory. */
async function makeEarlierDurable(dir: TrajectoryDir): Promise<void> {
  try {
    await makeDurable(dir);
  } catch (error) {
    if (!TitoError.is(error)) markUnsound(dir);
    throw error;
  }
}

/** Throws `cannot_write` when an earlier boot left word that what is read here may not be on the device. */
export function checkSound(dir: TrajectoryDir, names: readonly string[]): void {
  if (!names.includes(UNSOUND_FILE)) return;
  throw new TitoError(
    "cannot_write",
    `${dir.root.path}: the disk failed, and what was recorded here last may not be on it`,
    {
      hint: "look at the disk, and use another --trajectory-id; what was released before is kept",
    },
  );
}

/** The trajectory in `dir` as far as it can be read, made durable first where the new boot is; null when nothing was written yet. */
export async function recover(dir: TrajectoryDir, durability: Durability): Promise<Recovered | null> {
  try {
    if (durability === "fsync") await makeEarlierDurable(dir);
    const log = readTrajectory(dir.root.path, { mode: "salvage", disk: dir.root.disk });
    const released = withoutRefused(log);
    return { log, released, lines: rebuildLines(released) };
  } catch (error) {
    // a boot that died before it wrote anything leaves nothing to recover
    if (TitoError.is(error) && error.code === "not_found") return null;
    throw error;
  }
}

/** Segment number → highest part that was ever begun: on disk, or named by a commit or an interrupted seal although the power took the file. */
export function partsEverBegun(dir: TrajectoryDir, log: TrajectoryLog | undefined): Map<number, number> {
  const parts = partsOnDisk(dir);
  const committed = (log?.commits ?? []).map((commit) => commit.file);
  const listed = (log?.manifest?.files ?? []).map((file) => file.path);
  for (const file of [...committed, ...listed]) {
    const place = segmentOfName(path.basename(file));
    if (place !== null) parts.set(place.segment, Math.max(place.part, parts.get(place.segment) ?? 0));
  }
  return parts;
}

/**
 * Without the turns that their own boot refused: a gap names their call. Their sync may have failed, and what a failed sync leaves in memory reads
 * well, passes the next sync, and is not on the device.
 */
function withoutRefused(log: TrajectoryLog): TrajectoryLog {
  const refused = new Set(log.recorded_gaps.map((gap) => gap.call_id));
  const segments = log.segments.map((segment) => {
    const files = segment.files.map((file) => ({
      ...file,
      turns: file.turns.filter((turn) => !refused.has(turn.record.call_id)),
    }));
    return { ...segment, files, turns: files.flatMap((file) => file.turns) };
  });
  return { ...log, segments };
}
