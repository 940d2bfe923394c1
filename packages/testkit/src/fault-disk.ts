/**
 * A disk that fails on demand. It runs on the real one, counts the calls that can fail, makes chosen ones fail or fall short, and can play a power cut:
 * what was not synced is gone, in part or whole, as is a file whose name was not. Syncs are only noted: the device under it is not waited for.
 * A sync that fails is as Linux has it: the pages count as clean from then on, so that the next sync says yes and nothing of them is on the device.
 */
import fs from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { type Disk, nodeDisk } from "@tito/format";
import { seededRandom } from "./seeded-random.js";

export type DiskCall =
  | "open"
  | "writev"
  | "read"
  | "fdatasync"
  | "fsync"
  | "close"
  | "rename"
  | "unlink"
  | "mkdir"
  | "lstat"
  | "fstat"
  | "readdir";

export interface DiskFault {
  /** System error name, or `short`: a write that takes one byte less than it was given. */
  error: "ENOSPC" | "EIO" | "EDQUOT" | "EMFILE" | "EAGAIN" | "EINTR" | "ENOENT" | "short";
  /** Number of the call that fails, from 1, counted over `calls`. */
  at: number;
  /** Which calls are counted; all by default. */
  calls?: readonly DiskCall[];
  /** The calls after it fail as well. */
  forever?: boolean;
  /** How many in a row fail; 1 by default. */
  times?: number;
}

/** Resolves in a later turn of the event loop, as a sync does. */
const laterTurn = promisify(setImmediate);

interface TrackedFile {
  path: string;
  written: number;
  synced: number;
  /** A sync failed: what it should have synced never will be. */
  lost: boolean;
  /** The device failed and nobody was told, since who asked was killed: the next sync is told, once. */
  untold: string | null;
  /** Where pieces of writes ended, behind `synced`: a cut falls there more often than chance would have it. */
  edges: number[];
  /** True once the directory was synced after the file got this name. */
  named: boolean;
  /** What the name led to before; null: nothing. */
  before: Buffer | null;
}

export class FaultDisk implements Disk {
  /** Calls that can fail, in the order in which they came. */
  readonly calls: DiskCall[] = [];
  /** Faults that were delivered. */
  delivered = 0;
  private counted = 0;
  private fault: DiskFault | null;
  private dead = false;
  private readonly files: Map<string, TrackedFile>;
  private readonly pathOfFd = new Map<number, string>();

  constructor(fault: DiskFault | null = null, before: FaultDisk | null = null) {
    this.fault = fault;
    this.files = before?.files ?? new Map<string, TrackedFile>();
  }

  /** The process that used this disk is killed: its syncs that run count for nothing, and no call of it does anything. The next process gets the answer. */
  kill(fault: DiskFault | null = null): FaultDisk {
    this.dead = true;
    for (const fd of this.pathOfFd.keys()) nodeDisk.close(fd);
    this.pathOfFd.clear();
    return new FaultDisk(fault, this);
  }

  /** Changes what fails from now on; counting starts anew. */
  setFault(fault: DiskFault | null): void {
    this.fault = fault;
    this.counted = 0;
  }

  /** Null when the call goes through, else the fault that it meets. */
  private meet(call: DiskCall): DiskFault | null {
    if (this.dead) return { error: "EIO", at: 1 };
    this.calls.push(call);
    const { fault } = this;
    if (fault === null || (fault.calls !== undefined && !fault.calls.includes(call))) return null;
    this.counted++;
    const last = fault.forever === true ? Number.POSITIVE_INFINITY : fault.at + (fault.times ?? 1) - 1;
    const hit = this.counted >= fault.at && this.counted <= last;
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
    if ((flags & fs.constants.O_CREAT) !== 0) this.files.set(real, newFile(real));
    return fd;
  }

  writev(fd: number, buffers: readonly Uint8Array[]): number {
    const fault = this.meet("writev");
    if (fault !== null && fault.error !== "short") throw systemError(fault.error, "writev");
    const whole = Buffer.concat(buffers);
    const taken = nodeDisk.writev(fd, [fault === null ? whole : whole.subarray(0, whole.length - 1)]);
    const file = this.tracked(fd);
    if (file !== undefined) noteWritten(file, buffers, taken);
    return taken;
  }

  read(fd: number, into: Uint8Array, offset: number, length: number, position: number): number {
    this.enter("read");
    return nodeDisk.read(fd, into, offset, length, position);
  }

  async fdatasync(fd: number): Promise<void> {
    await this.meetSync("fdatasync", fd);
    await this.syncFile(fd);
  }

  private async meetSync(call: "fdatasync" | "fsync", fd: number): Promise<void> {
    const fault = this.meet(call);
    const file = this.tracked(fd);
    const error = fault?.error ?? file?.untold ?? null;
    if (error === null) return;
    if (fault !== null && !this.dead) await laterTurn();
    if (file !== undefined && file.written > file.synced) {
      file.untold = this.dead ? error : null;
      file.lost ||= !this.dead;
    }
    throw systemError(error, call);
  }

  private async syncFile(fd: number): Promise<void> {
    const file = this.tracked(fd);
    const written = file?.written ?? 0;
    await laterTurn();
    if (file === undefined || file.lost || this.dead) return;
    file.synced = Math.max(file.synced, written);
    file.edges = file.edges.filter((edge) => edge > file.synced);
  }

  async fsync(fd: number): Promise<void> {
    await this.meetSync("fsync", fd);
    if (!nodeDisk.fstat(fd).isDirectory) return this.syncFile(fd);
    const dir = this.pathOfFd.get(fd);
    const inside = [...this.files.values()].filter((file) => path.dirname(file.path) === dir);
    await laterTurn();
    if (!this.dead) for (const file of inside) file.named = true;
  }

  close(fd: number): void {
    if (this.dead) return;
    // Linux frees the descriptor even when close(2) fails
    this.pathOfFd.delete(fd);
    nodeDisk.close(fd);
    this.enter("close");
  }

  fstat(fd: number) {
    this.enter("fstat");
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
    this.enter("fstat");
    nodeDisk.chmod(fd, mode);
  }

  rename(from: string, to: string): void {
    this.enter("rename");
    const real = fs.realpathSync(from);
    const before = fs.existsSync(to) ? fs.readFileSync(to) : null;
    nodeDisk.rename(from, to);
    const file = this.files.get(real);
    this.files.delete(real);
    const target = fs.realpathSync(to);
    if (file !== undefined) this.files.set(target, { ...file, path: target, named: false, before });
  }

  unlink(file: string): void {
    this.enter("unlink");
    const real = fs.existsSync(file) ? fs.realpathSync(file) : file;
    nodeDisk.unlink(file);
    this.files.delete(real);
  }

  readdir(dir: string): string[] {
    this.enter("readdir");
    return nodeDisk.readdir(dir);
  }

  /**
   * The power goes: of what was written and not synced, each file keeps what `seed` chooses: up to a length, with zeros in place of the rest, or with
   * a hole; a file whose name was not synced may be gone. What is left is on the device, for the next process.
   */
  cutPower(seed: number): void {
    const random = seededRandom(seed);
    for (const file of this.files.values()) {
      if (!fs.existsSync(file.path)) continue;
      if (!file.named && random() < 0.5) {
        if (file.before === null) fs.unlinkSync(file.path);
        else fs.writeFileSync(file.path, file.before);
      } else if (file.written > file.synced) losePart(file, random);
    }
    this.settle();
  }

  /** Memory is needed: what a failed sync left in it as clean is dropped, and reads find what the device has. */
  dropCleanPages(): void {
    for (const file of this.files.values()) {
      if (file.lost && fs.existsSync(file.path)) zero(file.path, file.synced, file.written);
    }
    this.settle((file) => file.lost);
  }

  /** What is there now is what the device has. */
  private settle(which: (file: TrackedFile) => boolean = () => true): void {
    for (const [name, file] of this.files) {
      if (!which(file)) continue;
      if (!fs.existsSync(file.path)) this.files.delete(name);
      else {
        const bytes = fs.statSync(file.path).size;
        this.files.set(name, { ...newFile(file.path), written: bytes, synced: bytes, named: true });
      }
    }
  }

  private tracked(fd: number): TrackedFile | undefined {
    const real = this.pathOfFd.get(fd);
    return real === undefined ? undefined : this.files.get(real);
  }
}

function newFile(real: string): TrackedFile {
  return { path: real, written: 0, synced: 0, lost: false, untold: null, edges: [], named: false, before: null };
}

function noteWritten(file: TrackedFile, buffers: readonly Uint8Array[], taken: number): void {
  let at = file.written;
  for (const buffer of buffers) {
    at += buffer.length;
    if (at <= file.written + taken) file.edges.push(at);
  }
  file.written += taken;
}

function losePart(file: TrackedFile, random: () => number): void {
  const { synced, written, edges } = file;
  const edge = edges[Math.floor(random() * edges.length)] ?? written;
  const kept = random() < 0.5 ? edge : synced + Math.floor(random() * (written - synced + 1));
  const kind = random();
  if (kind < 0.75) fs.truncateSync(file.path, kept);
  else if (kind < 0.9) zero(file.path, kept, written);
  else zero(file.path, kept, Math.min(written, kept + 1 + Math.floor(random() * 512)));
}

function zero(file: string, from: number, to: number): void {
  const fd = fs.openSync(file, "r+");
  fs.writeSync(fd, Buffer.alloc(to - from), 0, to - from, from);
  fs.closeSync(fd);
}

function systemError(code: string, call: DiskCall): NodeJS.ErrnoException {
  return Object.assign(new Error(`${code}: injected, ${call}`), { code, syscall: call });
}
