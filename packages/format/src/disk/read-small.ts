/** Reads a small file that anybody may have put there: no link is followed, no pipe is waited for, no more is read than is allowed. */
import fs from "node:fs";
import { TitoError } from "../record/errors.js";
import { closeQuietly, type Disk, errorCode, isRegular, nodeDisk, readFully, systemMessage } from "./disk.js";

/** The file's bytes; null when there is none. Throws `format_invalid` for what is no file, `format_limit` beyond `bytesMax`, `io` when it can not be read. */
export function readSmallFile(file: string, bytesMax: number, disk: Disk = nodeDisk): Buffer | null {
  let fd: number;
  try {
    fd = disk.open(file, fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW | fs.constants.O_NONBLOCK);
  } catch (cause) {
    if (errorCode(cause) === "ENOENT") return null;
    throw cannotOpen(file, cause);
  }
  try {
    const status = disk.fstat(fd);
    if (!isRegular(status)) throw notRegular(file);
    if (status.size > bytesMax) throw new TitoError("format_limit", `${file}: ${status.size} bytes, above ${bytesMax}`);
    const bytes = Buffer.alloc(status.size);
    return bytes.subarray(0, readFully(disk, fd, bytes, bytes.length, 0));
  } catch (cause) {
    throw TitoError.is(cause) ? cause : new TitoError("io", `${file}: ${systemMessage(cause)}`, { cause });
  } finally {
    closeQuietly(disk, fd);
  }
}

/** Why a file could not be opened: `format_invalid` for a link or a socket, which no recorder leaves; `io` for the rest. */
export function cannotOpen(file: string, cause: unknown): TitoError {
  const code = errorCode(cause);
  if (code === "ELOOP" || code === "ENXIO") return notRegular(file);
  return new TitoError("io", `${file}: cannot be opened (${systemMessage(cause)})`, { cause });
}

export function notRegular(file: string): TitoError {
  return new TitoError("format_invalid", `${file}: a link, a directory or a pipe, and not a file`);
}
