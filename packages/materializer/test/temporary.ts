import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";

/** A temporary directory that is gone after the test file. */
export function temporaryDirectory(): string {
  const dir = mkdtempSync(join(tmpdir(), "tito-materializer-"));
  afterAll(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}
