/**
 * `npm run check`: format and lint, types of sources and tests, dead code, import direction of packages and rooms, file shape, seeds of tests, words, links.
 * Each check has a test that plants a violation and sees it caught (scripts/test/).
 */
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Finding, SourceFile } from "./checks/finding.js";
import { checkImports, checkManifest, checkRooms } from "./checks/imports.js";
import { checkLinks } from "./checks/links.js";
import { checkSeeds } from "./checks/seeds.js";
import { checkShape } from "./checks/shape.js";
import { runTools } from "./checks/tools.js";
import { checkWords } from "./checks/words.js";

const TEXT_BYTES_MAX = 1_500_000;
const root = resolve(import.meta.dirname ?? ".", "..");

function trackedFiles(): SourceFile[] {
  const listed = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], { cwd: root });
  return listed
    .toString("utf8")
    .split("\0")
    .filter((path) => path !== "" && existsSync(join(root, path)))
    .filter((path) => statSync(join(root, path)).isFile() && statSync(join(root, path)).size <= TEXT_BYTES_MAX)
    .map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }))
    .filter((file) => !file.text.includes("\0"));
}

function manifestFindings(): Finding[] {
  return readdirSync(join(root, "packages")).flatMap((name) => {
    const path = join(root, "packages", name, "package.json");
    if (!existsSync(path)) return [];
    const manifest = JSON.parse(readFileSync(path, "utf8")) as { dependencies?: Record<string, string> };
    return checkManifest(name, Object.keys(manifest.dependencies ?? {}));
  });
}

const files = trackedFiles();
const sources = files.filter((file) => /^(packages|scripts)\//.test(file.path));
const findings: Finding[] = [
  ...checkImports(sources),
  ...checkRooms(sources),
  ...manifestFindings(),
  ...checkShape(sources),
  ...checkSeeds(files),
  ...checkWords(files, root),
  ...checkLinks(files, (path) => existsSync(join(root, path))),
];
for (const finding of findings) console.error(`${finding.path}:${finding.line} [${finding.check}] ${finding.message}`);
const failedTools = runTools(root);
if (findings.length > 0 || failedTools.length > 0) {
  console.error(`check failed: ${findings.length} findings, ${failedTools.length} tools (${failedTools.join(", ")})`);
  process.exit(1);
}
console.log(`check passed: ${files.length} files, ${sources.length} sources`);
