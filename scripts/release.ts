/**
 * `npm run build:release [OUT]`: what is put into a sandbox, in `dist/release` or OUT: `tito.mjs`, `tito`, and their SHA-256 sums.
 * The same sources give the same bytes. Parts that cannot be made on this machine are named on standard error, and the exit code is 1.
 */
import { createHash } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { makeBlob, makeExecutable, missingNode, pinnedNode } from "./release/executable.js";
import { buildParts } from "./release/parts.js";
import { oneFile } from "./release/start.js";

const out = resolve(process.argv[2] ?? join(import.meta.dirname, "../dist/release"));
const FILES = ["tito.mjs", "tito"];

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
const work = mkdtempSync(join(tmpdir(), "tito-release-"));
const problems: string[] = [];
try {
  const parts = await buildParts();
  writeFileSync(join(out, "tito.mjs"), oneFile(parts));
  chmodSync(join(out, "tito.mjs"), 0o755);
  const missing = process.platform === "linux" && process.arch === "x64" ? missingNode() : "Linux on x64";
  if (missing !== null) problems.push(`tito: not made, it needs: ${missing}`);
  else {
    const blob = makeBlob(parts, work);
    await makeExecutable(pinnedNode(), blob, join(out, "tito"));
  }
} finally {
  rmSync(work, { recursive: true, force: true });
}

const made = FILES.filter((name) => existsSync(join(out, name)));
const sums = made.map((name) => {
  const bytes = readFileSync(join(out, name));
  console.log(`${name}  ${(bytes.length / 1e6).toFixed(2)} MB`);
  return `${createHash("sha256").update(bytes).digest("hex")}  ${name}\n`;
});
writeFileSync(join(out, "SHA256SUMS"), sums.join(""));
for (const problem of problems) console.error(problem);
process.exitCode = problems.length === 0 ? 0 : 1;
