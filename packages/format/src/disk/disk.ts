/**
 * The system calls that writing and reading need, and nothing else, so that a test can put a failing disk in their place.
 * Appends are synchronous: a page-cache write of a record takes tens of microseconds. Syncs are not: they wait for the device.
 */
import fs from "node:fs";
import { promisify } from "node:util";
import { TitoError } from "../record/errors.js";

export interface FileStatus {
  dev: number;
  ino: number;
  nlink: number;
  size: number;
  mode: number;
  uid: number;
  isDirectory: boolean;
}

/** All methods throw Node's system errors (`code`: ENOSPC, EIO, …). */
export interface Disk {
  open(path: string, flags: number, mode?: number): number;
  /** May write less than was given, as writev(2) does. */
  writev(fd: number, buffers: readonly Uint8Array[]): number;
  /** May read less than was asked, as pread(2) does; 0 at the end. */
  read(fd: number, into: Uint8Array, offset: number, length: number, position: number): number;
  fdatasync(fd: number): Promise<void>;
  fsync(fd: number): Promise<void>;
  close(fd: number): void;
  fstat(fd: number): FileStatus;
  /** Does not follow a link. */
  lstat(path: string): FileStatus;
  mkdir(path: string, mode: number): void;
  chmod(fd: number, mode: number): void;
  rename(from: string, to: string): void;
  unlink(path: string): void;
  readdir(path: string): string[];
}

const fdatasync = promisify(fs.fdatasync);
const fsync = promisify(fs.fsync);

/** The machine's own disk. */
export const nodeDisk: Disk = {
  open: (path, flags, mode) => fs.openSync(path, flags, mode),
  writev: (fd, buffers) => fs.writevSync(fd, buffers),
  read: (fd, into, offset, length, position) => fs.readSync(fd, into, offset, length, position),
  fdatasync,
  fsync,
  close: (fd) => fs.closeSync(fd),
  fstat: (fd) => toStatus(fs.fstatSync(fd)),
  lstat: (path) => toStatus(fs.lstatSync(path)),
  mkdir: (path, mode) => void fs.mkdirSync(path, { mode }),
  chmod: (fd, mode) => fs.fchmodSync(fd, mode),
  rename: (from, to) => fs.renameSync(from, to),
  unlink: (path) => fs.unlinkSync(path),
  readdir: (path) => fs.readdirSync(path),
};

function toStatus(stats: fs.Stats): FileStatus {
  const { dev, ino, nlink, size, mode, uid } = stats;
  return { dev, ino, nlink, size, mode, uid, isDirectory: stats.isDirectory() };
}

/** True for a plain file: no link, directory, pipe or device. */
export function isRegular({ mode }: Pick<FileStatus, "mode">): boolean {
  return (mode & fs.constants.S_IFMT) === fs.constants.S_IFREG;
}

/** The `code` of a system error, or null. */
export function errorCode(error: unknown): string | null {
  if (typeof error !== "object" || error === null || !("code" in error)) return null;
  return typeof error.code === "string" ? error.code : null;
}

/** Where a held directory is reached through its descriptor: a name that means nothing outside this process. */
const DESCRIPTOR_PATH = /\/proc\/self\/fd\/\d+\/?/g;

/** What the system says about a failure, without the names of our descriptors: whoever reads it knows paths alone. */
export function systemMessage(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.replace(DESCRIPTOR_PATH, "");
}

/** Writes all of `buffers` at the end of `fd`. Calls `onProgress` with the bytes taken so far, so that a torn frame is known as one. */
export function writeFully(
  disk: Disk,
  fd: number,
  buffers: readonly Uint8Array[],
  onProgress: (bytes: number) => void,
): void {
  let rest = buffers.filter((buffer) => buffer.length > 0);
  let interruptions = 0;
  while (rest.length > 0) {
    let taken = 0;
    try {
      taken = disk.writev(fd, rest);
    } catch (error) {
      const code = errorCode(error);
      if ((code !== "EINTR" && code !== "EAGAIN") || interruptions >= INTERRUPTIONS_MAX) throw error;
    }
    if (taken === 0 && ++interruptions > INTERRUPTIONS_MAX)
      throw new TitoError("io", "the disk takes no bytes and reports no error");
    if (taken > 0) onProgress(taken);
    rest = dropBytes(rest, taken);
  }
}

/** A call that a signal interrupted took nothing and may be repeated; not for ever. */
const INTERRUPTIONS_MAX = 8;

function dropBytes(buffers: readonly Uint8Array[], bytes: number): Uint8Array[] {
  const rest: Uint8Array[] = [];
  let drop = bytes;
  for (const buffer of buffers) {
    if (drop >= buffer.length) drop -= buffer.length;
    else {
      rest.push(drop === 0 ? buffer : buffer.subarray(drop));
      drop = 0;
    }
  }
  return rest;
}

/** Closes a descriptor whose bytes are synced or given up: Linux frees it whatever close(2) says, and nobody can act on the answer. */
export function closeQuietly(disk: Disk, fd: number): void {
  try {
    disk.close(fd);
  } catch {
    // see above
  }
}

/** Reads `length` bytes at `position`, looping on short reads; less only at the end of the file. */
export function readFully(disk: Disk, fd: number, into: Uint8Array, length: number, position: number): number {
  let got = 0;
  while (got < length) {
    const bytes = disk.read(fd, into, got, length - got, position + got);
    if (bytes === 0) break;
    got += bytes;
  }
  return got;
}
