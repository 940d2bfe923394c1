/** Sizes of a trajectory's files, to tell whether somebody wrote while it was read, and small files that may be anything. */
import fs from "node:fs";
import path from "node:path";
import { systemMessage } from "../disk/disk.js";
import { readSmallFile } from "../disk/read-small.js";
import { COMPLETE_FILE, SEGMENTS_DIR } from "../disk/trajectory-dir.js";
import { listFiles } from "../read/read-trajectory.js";
import { TitoError } from "../record/errors.js";

/** Names and sizes of an unsealed trajectory's files; null for a sealed one, which stands still. */
export function sizesIn(dir: string): string | null {
  if (fs.existsSync(path.join(dir, COMPLETE_FILE))) return null;
  const { journals, segments } = listFiles(dir);
  const files = [...journals, ...segments.map((name) => `${SEGMENTS_DIR}/${name}`)];
  return files.map((file) => `${file} ${fileBytes(path.join(dir, file))}`).join("\n");
}

/** Throws `io` when the file can not be looked at. */
export function fileBytes(file: string): number {
  try {
    return fs.lstatSync(file).size;
  } catch (cause) {
    throw new TitoError("io", `${file}: ${systemMessage(cause)}`, { cause });
  }
}

/** Null also for what is no file: the witness is not there. */
export function readOrNull(file: string, bytesMax: number): Buffer | null {
  try {
    return readSmallFile(file, bytesMax);
  } catch (error) {
    if (!TitoError.is(error) || error.code === "io") throw error;
    return null;
  }
}
