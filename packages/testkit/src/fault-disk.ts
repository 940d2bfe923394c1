/**
 * A disk that fails on demand. It runs on the real one, counts the calls that can fail, makes chosen ones fail or fall short, and can play a power cut:
 * what was not synced is gone, in part or whole, as is a file whose name was not. Syncs are only noted: the device under it is not waited for.
 */
import fs from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { type Disk, nodeDisk } from "@tito/format";
import { seededRandom } from "./seeded-random.js";

export type DiskCall = "open" | "writev" | "fdatasync" | "fsync" | "close" | "rename" | "unlink" | "mkdir" | "lstat";

export interface DiskFault {
  /** System error name, or `short`: a write that takes one byte less than it was given. */
  error: "ENOSPC" | "EIO" | "EDQUOT" | "EMFILE" | "EAGAIN" | "EINTR" | "ENOENT" | "short";
  /** Number of the call that fails, from 1, counted over `calls`. */
  at: number;
  /** Which calls are counted; all by default. */
  calls?: readonly DiskCall[];
  /** The calls after it fail as well. */
  forever?: boolean;
}

/** Resolves in a later turn of the event loop, as a sync does. */
const laterTurn = promisify(setImmediate);

interface TrackedFile {
  path: string;
  written: number;
  synced: number;
  /** True once the directory was synced after the file got this name. */
  named: boolean;
}

export class FaultDisk implements Disk {
  /** Calls that can fail, in the order in which they came. */
  readonly calls: DiskCall[] = [];
  /** Faults that were delivered. */
  delivered = 0;
  private counted = 0;
  private fault: DiskFault | null;
  private readonly files = new Map<string, TrackedFile>();
  private readonly pathOfFd = new Map<number, string>();

  constructor(fault: DiskFault | null = null) {
    this.fault = fault;
  }

  /** Changes what fails from now on; counting starts anew. */
  setFault(fault: DiskFault | null): void {
    this.fault = fault;
    this.counted = 0;
  }

  /** Null when the call goes through, else the fault that it meets. */
  private meet(call: DiskCall): DiskFault | null {
    this.calls.push(call);
    const { fault } = this;
    if (fault === null || (fault.calls !== undefined && !fault.calls.includes(call))) return null;
    this.counted++;
    const hit = fault.forever === true ? this.counted >= fault.at : this.counted === fault.at;
    if (!hit) return null;
    // a short write is no fault of any other call
    if (fault.error === "short" && call !== "writev") return null;
    this.delivered++;
    return fault;
  }

  private enter(call: DiskCall): void {
    const fault = this.meet(call);
    if (fault !== null) throw systemError(fault.error, call);
  }

  open(file: string, flags: number, mode?: number): number {
    this.enter("open");
    const fd = nodeDisk.open(file, flags, mode);
    const real = fs.readlinkSync(`/proc/self/fd/${fd}`);
    this.pathOfFd.set(fd, real);
    if ((flags & fs.constants.O_CREAT) !== 0) this.files.set(real, { path: real, written: 0, synced: 0, named: false });
    return fd;
  }

  writev(fd: number, buffers: readonly Uint8Array[]): number {
    const fault = this.meet("writev");
    if (fault !== null && fault.error !== "short") throw systemError(fault.error, "writev");
    const whole = Buffer.concat(buffers);
    const taken = nodeDisk.writev(fd, [fault === null ? whole : whole.subarray(0, whole.length - 1)]);
    const file = this.tracked(fd);
    if (file !== undefined) file.written += taken;
    return taken;
  }

  read(fd: number, into: Uint8Array, offset: number, length: number, position: number): number {
    return nodeDisk.read(fd, into, offset, length, position);
  }

  async fdatasync(fd: number): Promise<void> {
    this.enter("fdatasync");
    await this.syncFile(fd);
  }

  private async syncFile(fd: number): Promise<void> {
    const file = this.tracked(fd);
    const written = file?.written ?? 0;
    await laterTurn();
    if (file !== undefined) file.synced = Math.max(file.synced, written);
  }

  async fsync(fd: number): Promise<void> {
    this.enter("fsync");
    if (!nodeDisk.fstat(fd).isDirectory) return this.syncFile(fd);
    const dir = this.pathOfFd.get(fd);
    const inside = [...this.files.values()].filter((file) => path.dirname(file.path) === dir);
    await laterTurn();
    for (const file of inside) file.named = true;
  }

  close(fd: number): void {
    // Linux frees the descriptor even when close(2) fails
    this.pathOfFd.delete(fd);
    nodeDisk.close(fd);
    this.enter("close");
  }

  fstat(fd: number) {
    return nodeDisk.fstat(fd);
  }

  lstat(file: string) {
    this.enter("lstat");
    return nodeDisk.lstat(file);
  }

  mkdir(dir: string, mode: number): void {
    this.enter("mkdir");
    nodeDisk.mkdir(dir, mode);
  }

  chmod(fd: number, mode: number): void {
    nodeDisk.chmod(fd, mode);
  }

  rename(from: string, to: string): void {
    this.enter("rename");
    const real = fs.realpathSync(from);
    nodeDisk.rename(from, to);
    const file = this.files.get(real);
    this.files.delete(real);
    const target = fs.realpathSync(to);
    if (file !== undefined) this.files.set(target, { ...file, path: target, named: false });
  }

  unlink(file: string): void {
    this.enter("unlink");
    const real = fs.existsSync(file) ? fs.realpathSync(file) : file;
    nodeDisk.unlink(file);
    this.files.delete(real);
  }

  readdir(dir: string): string[] {
    return nodeDisk.readdir(dir);
  }

  /**
   * The power goes: of what was written and not synced, each file keeps a length chosen by `seed`; a file whose name was not synced may be gone.
   * No call may come after it.
   */
  cutPower(seed: number): void {
    const random = seededRandom(seed);
    for (const file of this.files.values()) {
      if (!fs.existsSync(file.path)) continue;
      if (!file.named && random() < 0.5) fs.unlinkSync(file.path);
      else fs.truncateSync(file.path, file.synced + Math.floor(random() * (file.written - file.synced + 1)));
    }
  }

  private tracked(fd: number): TrackedFile | undefined {
    const real = this.pathOfFd.get(fd);
    return real === undefined ? undefined : this.files.get(real);
  }
}

function systemError(code: string, call: DiskCall): NodeJS.ErrnoException {
  return Object.assign(new Error(`${code}: injected, ${call}`), { code, syscall: call });
}
