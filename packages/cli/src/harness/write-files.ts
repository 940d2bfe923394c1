/**
 * Writes a harness's config files below a home directory, readable by their owner only.
 * What a user wrote is never overwritten unasked: a record beside the files says which content is ours.
 */
import { createHash, randomBytes } from "node:crypto";
import { lstatSync, mkdirSync, readFileSync, realpathSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, isAbsolute, join, normalize, sep } from "node:path";
import { TitoError } from "@tito/format";
import type { HarnessAdapter, HarnessFile, HarnessSetup, HarnessTarget } from "./adapter.js";

/** Relative to home: path → SHA-256 of what was written there last. */
const RECORD_FILE = ".tito-harness.json";

/**
 * Configures `adapter` for `target` and writes its files.
 * @returns the setup, with environment and command line.
 * @throws TitoError `already_exists` when a file holds something else and `force` is not set; `cannot_write`. Nothing is written then.
 */
export function writeHarness(
  adapter: HarnessAdapter,
  target: HarnessTarget,
  options: { force?: boolean } = {},
): HarnessSetup {
  const setup = adapter.configure(target);
  writeHarnessFiles(target.home, setup.files, options);
  return setup;
}

export function writeHarnessFiles(
  home: string,
  files: readonly HarnessFile[],
  options: { force?: boolean } = {},
): void {
  if (files.length === 0) return;
  attempt(home, () => mkdirSync(home, { recursive: true, mode: 0o700 }));
  const record = readRecord(home);
  const targets = files.map((file) => ({ file, path: pathInside(home, file.path) }));
  for (const { file, path } of targets) checkFree(path, file, record.get(file.path), options.force === true);
  for (const { file, path } of targets) {
    attempt(path, () => writeOwned(path, file.content));
    record.set(file.path, digest(file.content));
  }
  const json = JSON.stringify(Object.fromEntries(record), null, 2);
  attempt(RECORD_FILE, () => writeOwned(join(home, RECORD_FILE), `${json}\n`));
}

/** @throws TitoError `cannot_write` when the path leaves home, also by way of a symbolic link. */
function pathInside(home: string, relative: string): string {
  const refuse = (why: string) => new TitoError("cannot_write", `${relative} ${why}; files go below ${home} only`);
  const clean = normalize(relative);
  if (isAbsolute(clean) || clean === ".." || clean.startsWith(`..${sep}`)) throw refuse("leaves the home directory");
  const root = realpathSync(home);
  let existing = dirname(join(root, clean));
  while (!exists(existing)) existing = dirname(existing);
  const real = realpathSync(existing);
  if (real !== root && !real.startsWith(root + sep))
    throw refuse("is behind a symbolic link out of the home directory");
  return join(root, clean);
}

function checkFree(path: string, file: HarnessFile, ours: string | undefined, force: boolean): void {
  if (!exists(path)) return;
  const isFile = lstatSync(path).isFile();
  if (!isFile) throw new TitoError("already_exists", `${path} is there and is no plain file`, { hint: "move it away" });
  const content = readFileSync(path, "utf8");
  if (force || content === file.content || digest(content) === ours) return;
  throw new TitoError("already_exists", `${path} holds a configuration of your own`, {
    hint: "use another --home, or --force to overwrite it",
  });
}

function writeOwned(path: string, content: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const temporary = `${path}.${randomBytes(4).toString("hex")}`;
  try {
    writeFileSync(temporary, content, { mode: 0o600, flag: "wx" });
    renameSync(temporary, path);
  } finally {
    rmSync(temporary, { force: true });
  }
}

function readRecord(home: string): Map<string, string> {
  try {
    const parsed: unknown = JSON.parse(readFileSync(join(home, RECORD_FILE), "utf8"));
    return new Map(
      Object.entries(parsed ?? {}).filter((entry): entry is [string, string] => typeof entry[1] === "string"),
    );
  } catch {
    // No record, or not ours: then nothing there counts as ours.
    return new Map();
  }
}

function exists(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

function digest(content: string): string {
  return createHash("sha256").update(content).digest("hex");
}

function attempt(path: string, write: () => void): void {
  try {
    write();
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? String(cause);
    throw new TitoError("cannot_write", `cannot write ${path}: ${code}`, { cause });
  }
}
