/**
 * The directory of a trajectory, created and held by its own descriptor, and the lock that says which process writes into it.
 * Names are made here and never joined from what came in; links planted in the way are refused, not followed.
 */
import fs from "node:fs";
import path from "node:path";
import { TitoError } from "../record/errors.js";
import { LIMITS } from "../record/limits.js";
import { closeQuietly, type Disk, errorCode, systemMessage, writeFully } from "./disk.js";
import { readSmallFile } from "./read-small.js";

const TRAJECTORY_ID = /^[A-Za-z0-9_-]{1,64}$/;

/** True for an id that may become a directory name. */
export function isTrajectoryId(id: string): boolean {
  return TRAJECTORY_ID.test(id);
}

export const SEGMENTS_DIR = "segments";
export const MANIFEST_FILE = "manifest.json";
export const COMPLETE_FILE = "COMPLETE";
export const BALLAST_FILE = "ballast";
/** Left where what is read back may not be on the device, and no record says so. */
export const UNSOUND_FILE = "unsound";

/** `journal.seg` for the first boot, then `journal-0002.seg`. */
export function journalName(boot: number): string {
  return boot === 1 ? "journal.seg" : `journal-${String(boot).padStart(4, "0")}.seg`;
}

/** Boot number of a journal's name; null for any other name. */
export function bootOfJournal(name: string): number | null {
  if (name === "journal.seg") return 1;
  const match = /^journal-(\d{4})\.seg$/.exec(name);
  return match === null ? null : Number(match[1]);
}

/** `segments/000007.seg`; later parts of the same segment are `segments/000007-0002.seg`. */
export function segmentName(segment: number, part: number): string {
  const number = String(segment).padStart(6, "0");
  return `${SEGMENTS_DIR}/${number}${part === 1 ? "" : `-${String(part).padStart(4, "0")}`}.seg`;
}

/** Segment and part number of a file's base name; null for any other name. */
export function segmentOfName(name: string): { segment: number; part: number } | null {
  const match = /^(\d{6})(?:-(\d{4}))?\.seg$/.exec(name);
  return match === null ? null : { segment: Number(match[1]), part: match[2] === undefined ? 1 : Number(match[2]) };
}

function lockName(boot: number): string {
  return `writer-${String(boot).padStart(4, "0")}.lock`;
}

function bootOfLock(name: string): number | null {
  const match = /^writer-(\d{4})\.lock$/.exec(name);
  return match === null ? null : Number(match[1]);
}

/** An open directory. `at(name)` is a path that stays in it even when the directory is renamed or replaced by a link. */
export class HeldDir {
  private readonly identity: { dev: number; ino: number };

  private constructor(
    readonly disk: Disk,
    readonly path: string,
    readonly fd: number,
    private readonly base: string,
  ) {
    const { dev, ino } = disk.fstat(fd);
    this.identity = { dev, ino };
  }

  static open(disk: Disk, parent: string, name: string, shownPath: string): HeldDir {
    const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = fs.constants;
    const fd = disk.open(
      name === "" ? parent : `${parent}/${name}`,
      O_RDONLY | O_DIRECTORY | (name === "" ? 0 : O_NOFOLLOW),
    );
    const proc = `/proc/self/fd/${fd}`;
    // where /proc is missing (macOS), the path itself is used: creation stays exclusive, but a renamed parent is followed
    return new HeldDir(disk, shownPath, fd, fs.existsSync(proc) ? proc : shownPath);
  }

  at(name: string): string {
    return `${this.base}/${name}`;
  }

  /** Makes the names in this directory durable. A file system that has no such call (9p, CIFS) orders names by itself or not at all. */
  async sync(): Promise<void> {
    try {
      await this.disk.fsync(this.fd);
    } catch (error) {
      if (!["EINVAL", "ENOTSUP", "EOPNOTSUPP"].includes(errorCode(error) ?? "")) throw error;
    }
  }

  /** Opens a directory in this one, creating it with mode 0700. Refuses a link and a directory of another user. */
  child(name: string): HeldDir {
    const shown = path.join(this.path, name);
    try {
      this.disk.mkdir(this.at(name), 0o700);
    } catch (error) {
      if (errorCode(error) !== "EEXIST") throw error;
    }
    const dir = HeldDir.open(this.disk, this.base, name, shown);
    const status = this.disk.fstat(dir.fd);
    if (process.getuid !== undefined && status.uid !== process.getuid()) {
      dir.close();
      throw new TitoError("cannot_write", `${shown} belongs to user ${status.uid}`, {
        hint: "choose another --out directory",
      });
    }
    if ((status.mode & 0o777) !== 0o700) this.disk.chmod(dir.fd, 0o700);
    return dir;
  }

  /** Why the path no longer leads to this directory; null when it does. */
  findIdentityProblem(): string | null {
    const { dev, ino } = this.identity;
    try {
      const there = this.disk.lstat(this.path);
      return there.dev === dev && there.ino === ino ? null : `${this.path} was replaced`;
    } catch (error) {
      return `${this.path} is gone (${errorCode(error) ?? "error"})`;
    }
  }

  close(): void {
    closeQuietly(this.disk, this.fd);
  }
}

/** The directory of one trajectory and its `segments`, held open. */
export interface TrajectoryDir {
  root: HeldDir;
  segments: HeldDir;
}

/** Creates or opens `out/trajectoryId`. Throws `usage` for a bad id, `cannot_write` when it can not be made or is not ours. */
export async function openTrajectoryDir(disk: Disk, out: string, trajectoryId: string): Promise<TrajectoryDir> {
  if (!isTrajectoryId(trajectoryId)) {
    throw new TitoError("usage", `"${trajectoryId.slice(0, 80)}" is not a trajectory id`, {
      hint: "use 1 to 64 of the characters A-Z a-z 0-9 _ -",
    });
  }
  const held: HeldDir[] = [];
  try {
    fs.mkdirSync(out, { recursive: true, mode: 0o700 });
    const parent = HeldDir.open(disk, path.resolve(out), "", path.resolve(out));
    held.push(parent);
    const root = parent.child(trajectoryId);
    held.push(root);
    const segments = root.child(SEGMENTS_DIR);
    held.push(segments);
    await root.sync();
    await parent.sync();
    parent.close();
    return { root, segments };
  } catch (cause) {
    for (const dir of held) dir.close();
    if (TitoError.is(cause)) throw cause;
    throw new TitoError("cannot_write", `${path.join(out, trajectoryId)}: ${systemMessage(cause)}`, {
      cause,
      hint: "choose an --out directory that this user can write to",
    });
  }
}

/** Segment number → highest part number among the file names that are there, readable or not. */
export function partsOnDisk(dir: TrajectoryDir): Map<number, number> {
  const parts = new Map<number, number>();
  for (const name of dir.segments.disk.readdir(dir.segments.at("."))) {
    const place = segmentOfName(name);
    if (place !== null) parts.set(place.segment, Math.max(place.part, parts.get(place.segment) ?? 0));
  }
  return parts;
}

/**
 * Takes the next boot number. One live process writes a trajectory: while the holder of the last number lives, `already_exists` is thrown.
 * Two that start at the same moment race for the exclusive creation of one lock file; the loser sees a live holder. A process in another
 * PID namespace can not be seen; it gets the next number and, like everybody, files of its own.
 */
export function takeBoot(dir: TrajectoryDir): number {
  const { root } = dir;
  for (let attempt = 0; attempt < LIMITS.bootsMax; attempt++) {
    const names = root.disk.readdir(root.at("."));
    const locks = names.map(bootOfLock).filter((boot) => boot !== null);
    const last = Math.max(0, ...locks, ...names.map((name) => bootOfJournal(name) ?? 0));
    if (locks.includes(last) && isHolderAlive(root.at(lockName(last)))) {
      throw new TitoError("already_exists", `${root.path} is being written by another process`, {
        hint: "use another --trajectory-id, or stop that process first",
      });
    }
    if (last >= LIMITS.bootsMax)
      throw new TitoError("format_limit", `${root.path}: ${last} boots are the most there can be`);
    if (createLock(root, last + 1)) {
      for (const stale of locks) removeQuietly(root, lockName(stale));
      return last + 1;
    }
  }
  throw new TitoError("already_exists", `${root.path}: no boot number could be taken`);
}

/** Takes the number after `boot` for the same process, after its journal failed. */
export function takeNextBoot(dir: TrajectoryDir, boot: number): number {
  const { root } = dir;
  const names = root.disk.readdir(root.at("."));
  const last = Math.max(boot, ...names.map((name) => bootOfJournal(name) ?? 0));
  createLock(root, last + 1);
  removeQuietly(root, lockName(boot));
  return last + 1;
}

export function releaseBoot(dir: TrajectoryDir, boot: number): void {
  removeQuietly(dir.root, lockName(boot));
}

function createLock(root: HeldDir, boot: number): boolean {
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = fs.constants;
  let fd: number;
  try {
    fd = root.disk.open(root.at(lockName(boot)), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  } catch (error) {
    if (errorCode(error) === "EEXIST") return false;
    throw error;
  }
  try {
    writeFully(root.disk, fd, [Buffer.from(`${process.pid} ${startTicks(process.pid) ?? "-"}\n`)], () => undefined);
  } catch (error) {
    // an empty lock would keep the next process away as if somebody were just about to write it
    removeQuietly(root, lockName(boot));
    throw error;
  } finally {
    closeQuietly(root.disk, fd);
  }
  return true;
}

/** How long an empty lock may belong to a process that is just about to write its number into it. */
const EMPTY_LOCK_MS = 10_000;

const LOCK_BYTES_MAX = 4096;

function isHolderAlive(lockPath: string): boolean {
  try {
    const [pid, ticks] = (readSmallFile(lockPath, LOCK_BYTES_MAX)?.toString("utf8") ?? "").trim().split(" ");
    if (pid === undefined || !/^\d+$/.test(pid)) return Date.now() - fs.lstatSync(lockPath).mtimeMs < EMPTY_LOCK_MS;
    process.kill(Number(pid), 0);
    return ticks === undefined || ticks === "-" || ticks === startTicks(Number(pid));
  } catch (error) {
    // EPERM: it lives, under another user
    return errorCode(error) === "EPERM";
  }
}

/** Start time of a process since boot, from /proc: a process that got a dead one's number has another. Null where there is no /proc. */
function startTicks(pid: number): string | null {
  try {
    const stat = fs.readFileSync(`/proc/${pid}/stat`, "utf8");
    // the name may hold spaces and parentheses; fields are counted after its end
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? null;
  } catch {
    return null;
  }
}

/**
 * Marks the trajectory as one that no boot may go on with. The mark needs no sync: what it warns of is pages that are in memory only, and a power
 * cut that takes the mark takes them as well.
 */
export function markUnsound({ root }: TrajectoryDir): void {
  const { O_WRONLY, O_CREAT, O_NOFOLLOW } = fs.constants;
  try {
    closeQuietly(root.disk, root.disk.open(root.at(UNSOUND_FILE), O_WRONLY | O_CREAT | O_NOFOLLOW, 0o600));
  } catch {
    // a disk that takes nothing at all: nobody can be told
  }
}

/** Removes a file that only helps; that it is still there harms nobody. */
export function removeQuietly(dir: HeldDir, name: string): void {
  try {
    dir.disk.unlink(dir.at(name));
  } catch {
    // gone already, or the disk is failing: the caller has nothing to do about it
  }
}
