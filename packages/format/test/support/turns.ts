/** Directories for tests; the records and writers are in records.ts. */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, afterEach } from "vitest";

export { Conversation, concat, ids, intent, openWriter, turn } from "./records.js";

const dirs: string[] = [];
afterEach(() => {
  for (const dir of dirs.splice(0)) fs.rmSync(dir, { recursive: true, force: true });
});

const kept: string[] = [];
afterAll(() => {
  for (const dir of kept.splice(0)) fs.rmSync(dir, { recursive: true, force: true });
});

/** A directory that is removed after the file's tests. */
export function keepDir(): string {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), "tito-format-"));
  kept.push(dir);
  return dir;
}

/** A directory that is removed after the test. */
export function tempDir(): string {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), "tito-format-"));
  dirs.push(dir);
  return dir;
}
