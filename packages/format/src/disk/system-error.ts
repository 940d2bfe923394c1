/** What the operating system says about a file, as an error of ours. */

import { TitoError } from "../record/errors.js";
import { systemMessage } from "./disk.js";

const HINTS: ReadonlyMap<string, string> = new Map([
  ["EACCES", "check that this user may read and write it"],
  ["EPERM", "check that this user may read and write it"],
  ["ENOSPC", "make room and run it again"],
  ["EDQUOT", "make room and run it again"],
  ["EROFS", "name a place that can be written to; TMPDIR says where temporary files go"],
  ["EISDIR", "name a file, not a directory"],
  ["EMFILE", "raise the limit of open files"],
]);
/** Failures of files that name no path. */
const PATHLESS: ReadonlySet<string> = new Set(["ENOSPC", "EDQUOT", "EISDIR", "EIO", "EMFILE", "ENFILE", "EROFS"]);

/** `io` with the system's message and what can be done, when `error` is about a file; any other error as it is. */
export function fromSystem(error: unknown): unknown {
  if (!(error instanceof Error) || TitoError.is(error)) return error;
  const { code, syscall, path } = error as NodeJS.ErrnoException;
  if (typeof code !== "string" || typeof syscall !== "string") return error;
  if (typeof path !== "string" && !PATHLESS.has(code)) return error;
  const hint = HINTS.get(code);
  return new TitoError("io", systemMessage(error), { cause: error, ...(hint === undefined ? {} : { hint }) });
}
