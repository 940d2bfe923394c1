/** Directories for the time of one run: the endpoint file's, and the home of a harness. They go where this machine lets files be written. */
import { lchownSync, mkdtempSync, readdirSync, realpathSync, rmdirSync, rmSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join, resolve, sep } from "node:path";
import { TitoError } from "@tito/format";
import { type AgentUser, asUser } from "./agent-user.js";

export interface ScratchOptions {
  /** Beginning of the directory's name. */
  prefix: string;
  /** What it is for, in a message: "the harness's home". */
  purpose: string;
  /** What the user may say instead, as the end of a hint. */
  instead: string;
  /** Whose it becomes; null: ours. */
  owner: AgentUser | null;
  /** The record's directory: nothing of the agent's goes below it unless TMPDIR says so. */
  out: string | null;
  warn(message: string): void;
}

export interface ScratchDir {
  path: string;
  /** Takes it away with all that is in it. What the owner put there is removed with the owner's rights: its links lead no further than the owner may go. */
  remove(): void;
}

/** Where to look, best first: the place for temporary files, then what is usually writable under a read-only root. */
function scratchPlaces(owner: AgentUser | null): string[] {
  return [...new Set([tmpdir(), "/tmp", "/var/tmp", owner?.home ?? homedir(), "/dev/shm"])];
}

/**
 * Makes a fresh directory that its owner can use, in the first of `places` that allows it; says so when that is not the first.
 * @throws TitoError `cannot_write` that names every place that was tried.
 */
export function makeScratchDir(
  options: ScratchOptions,
  places: readonly string[] = scratchPlaces(options.owner),
): ScratchDir {
  const failures: string[] = [];
  for (const [index, place] of places.entries()) {
    if (index > 0 && options.out !== null && isInside(place, options.out)) continue;
    try {
      const path = makeIn(place, options);
      if (index > 0)
        options.warn(
          `can not write to ${failures[0]}: ${options.purpose} is ${path}; TMPDIR or ${options.instead} names another place`,
        );
      return { path, remove: () => removeScratch(path, options.owner) };
    } catch (error) {
      failures.push(`${place} (${(error as NodeJS.ErrnoException).code ?? String(error)})`);
    }
  }
  throw new TitoError("cannot_write", `${options.purpose} can not be made in any of ${failures.join(", ")}`, {
    hint: `set TMPDIR to a directory that can be written to, or give ${options.instead}`,
  });
}

function makeIn(place: string, { prefix, owner }: ScratchOptions): string {
  const path = mkdtempSync(join(place, prefix));
  try {
    if (owner === null) return path;
    lchownSync(path, owner.uid, owner.gid);
    // Below a directory that is closed to the owner it would be of no use.
    asUser(owner, () => readdirSync(path));
    return path;
  } catch (error) {
    rmdirSync(path);
    throw error;
  }
}

/** What is left behind is garbage among temporary files; a run does not fail for it. */
function removeScratch(path: string, owner: AgentUser | null): void {
  try {
    asUser(owner, () => {
      for (const name of readdirSync(path)) rmSync(join(path, name), { recursive: true, force: true });
    });
    rmdirSync(path);
  } catch {
    // Still in use, or gone already.
  }
}

function isInside(path: string, directory: string): boolean {
  const [inner, outer] = [real(path), real(directory)];
  return inner === outer || inner.startsWith(outer + sep);
}

function real(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return resolve(path);
  }
}
