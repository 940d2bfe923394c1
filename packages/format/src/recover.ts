/** What earlier boots of a trajectory left on disk, read before a new boot writes its first byte. Nothing of it is touched. */
import fs from "node:fs";
import { closeQuietly, errorCode } from "./disk.js";
import { TitoError } from "./errors.js";
import type { Durability } from "./frame-file.js";
import { rebuildLines } from "./lines.js";
import { listFiles, readTrajectory } from "./read-trajectory.js";
import type { HeldDir, TrajectoryDir } from "./trajectory-dir.js";
import type { Recovered } from "./writer-types.js";

/**
 * Syncs every file that earlier boots left. A process that died had synced what it released, but wrote more: that is still read back, and a new
 * boot builds on it, so it must not go with the power afterwards. Throws the system error; what can not be opened is left to the reader to tell.
 */
async function makeDurable(dir: TrajectoryDir): Promise<void> {
  const { root, segments } = dir;
  const { journals, segments: parts } = listFiles(root.path);
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
  } catch {
    return;
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

/** The trajectory in `dir` as far as it can be read, made durable first where the new boot is; null when nothing was written yet. */
export async function recover(dir: TrajectoryDir, durability: Durability): Promise<Recovered | null> {
  try {
    if (durability === "fsync") await makeDurable(dir);
    const log = readTrajectory(dir.root.path, { mode: "salvage" });
    return { log, lines: rebuildLines(log) };
  } catch (error) {
    // a boot that died before it wrote anything leaves nothing to recover
    if (TitoError.is(error) && error.code === "not_found") return null;
    throw error;
  }
}
