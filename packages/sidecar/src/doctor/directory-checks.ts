/** Does a directory keep what the writer relies on? Tried on files of our own in a directory of our own, which goes afterwards. */
import { randomBytes } from "node:crypto";
import { chmodSync, constants, existsSync, lstatSync, rmSync, statSync, symlinkSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { Disk } from "@tito/format";
import { judgeSyncs } from "./disk-figures.js";
import { type Finding, finding, reasonOf } from "./finding.js";

const SYNCS = 20;
const SYNC_BYTES = 4096;

/** A private directory inside the one that is looked at, or why there is none. */
export interface Probe {
  dir: string;
  file: string;
  remove(): void;
}

/** The directory itself, or the nearest one above it that exists: that is where it will be made. */
export function existingPart(out: string): string {
  let dir = resolve(out);
  while (!existsSync(dir) && dirname(dir) !== dir) dir = dirname(dir);
  return dir;
}

/** @throws the system error when nothing can be written here. */
export function openProbe(disk: Disk, parent: string): Probe {
  const dir = join(parent, `.tito-doctor-${randomBytes(6).toString("hex")}`);
  disk.mkdir(dir, 0o700);
  const remove = (): void => rmSync(dir, { recursive: true, force: true });
  try {
    chmodSync(dir, 0o700);
    const file = join(dir, "000001.seg");
    const fd = openNew(disk, file);
    disk.close(fd);
    return { dir, file, remove };
  } catch (error) {
    remove();
    throw error;
  }
}

function openNew(disk: Disk, path: string): number {
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW, O_APPEND } = constants;
  return disk.open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_APPEND, 0o600);
}

/** Who owns the directory, who else may change it, and whether modes mean anything here. */
export function checkOwnership(out: string, parent: string, probe: Probe): Finding {
  const uid = process.getuid?.() ?? null;
  const made = statSync(probe.dir);
  const file = statSync(probe.file);
  const shown = resolve(out) === parent ? parent : `${resolve(out)} (to be made in ${parent})`;
  if (uid !== null && made.uid !== uid) {
    return finding(
      "directory",
      "failure",
      `${shown}: files of user ${uid} belong to user ${made.uid}`,
      "the file system maps users (root squash?): use another --out",
    );
  }
  if ((made.mode & 0o777) !== 0o700 || (file.mode & 0o777) !== 0o600) {
    return finding("directory", "warning", `${shown}: modes are not kept`, "other users can read the record here");
  }
  const open = openToOthers(parent, uid);
  if (open !== null) {
    return finding(
      "directory",
      "warning",
      `${shown}: other users may replace names in ${open}`,
      "take the write bit off, or set the sticky bit",
    );
  }
  return finding("directory", "ok", `${shown} is writable, and only by its owner`);
}

/** The lowest directory above a trajectory in which another user could rename or remove it. */
function openToOthers(dir: string, uid: number | null): string | null {
  for (let at = dir; ; at = dirname(at)) {
    const { mode, uid: owner } = lstatSync(at);
    const sticky = (mode & 0o1000) !== 0;
    if ((mode & 0o022) !== 0 && !sticky) return at;
    if (uid !== null && owner !== uid && owner !== 0) return at;
    if (dirname(at) === at) return null;
  }
}

/** Exclusive creation, links that are not followed, names through a held directory. */
export function checkNames(disk: Disk, probe: Probe): Finding {
  const problems: string[] = [];
  if (!refuses(() => openNew(disk, probe.file), "EEXIST", disk))
    problems.push("O_EXCL does not refuse a file that is there");
  const link = join(probe.dir, "link");
  symlinkSync(probe.file, link);
  const { O_WRONLY, O_NOFOLLOW, O_RDONLY, O_DIRECTORY } = constants;
  if (!refuses(() => disk.open(link, O_WRONLY | O_NOFOLLOW), "ELOOP", disk)) problems.push("O_NOFOLLOW follows links");
  if (problems.length > 0) return finding("names", "failure", problems.join("; "), "use another file system for --out");
  const fd = disk.open(probe.dir, O_RDONLY | O_DIRECTORY);
  try {
    disk.lstat(`/proc/self/fd/${fd}/000001.seg`);
    return finding(
      "names",
      "ok",
      "files are made exclusively, links are refused, names are reached through the held directory",
    );
  } catch {
    return finding(
      "names",
      "warning",
      "/proc/self/fd is not there",
      "a directory that is moved while it is written is noticed at the next turn only",
    );
  } finally {
    disk.close(fd);
  }
}

function refuses(open: () => number, code: string, disk: Disk): boolean {
  try {
    disk.close(open());
    return false;
  } catch (error) {
    return reasonOf(error) === code;
  }
}

/** Appends and syncs as the writer does. */
export async function checkSyncs(disk: Disk, probe: Probe): Promise<Finding> {
  const latenciesMs: number[] = [];
  try {
    const fd = openNew(disk, join(probe.dir, "sync.seg"));
    try {
      for (let index = 0; index < SYNCS; index += 1) {
        disk.writev(fd, [randomBytes(SYNC_BYTES)]);
        const startedMs = performance.now();
        await disk.fdatasync(fd);
        latenciesMs.push(performance.now() - startedMs);
      }
    } finally {
      disk.close(fd);
    }
  } catch (error) {
    return finding(
      "sync_latency",
      "failure",
      `writing and syncing fails: ${reasonOf(error)}`,
      "no answer could be recorded here",
    );
  }
  return judgeSyncs(latenciesMs);
}
