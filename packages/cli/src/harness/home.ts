/** The directory that stands for a harness's home: a fresh one, or the user's. It and all that is in it belong to whoever the harness runs as. */
import { accessSync, constants, lchownSync, mkdirSync, mkdtempSync, readdirSync, rmdirSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { TitoError } from "@tito/format";
import { type AgentUser, asUser, makeScratchDir } from "@tito/sidecar";

export interface HomeOptions {
  /** `--harness-home`; null: a fresh directory, removed afterwards. */
  given: string | null;
  /** Null: the harness runs as we do. */
  user: AgentUser | null;
  /** The record's directory. */
  out: string | null;
  warn(message: string): void;
}

export interface Home {
  path: string;
  /** Variables that the harness needs to write where it may. */
  env: Record<string, string>;
  remove(): void;
}

/** @throws TitoError `cannot_write`, with what to do. */
export function takeHome(options: HomeOptions): Home {
  const { given, user, out, warn } = options;
  const scratch =
    given === null
      ? makeScratchDir({
          prefix: "tito-home-",
          purpose: "the harness's home",
          instead: "--harness-home DIR",
          owner: user,
          out,
          warn,
        })
      : null;
  const path = scratch?.path ?? takeGiven(resolve(given!), user);
  // A harness writes below HOME too, whatever its config files say.
  const env = isWritable(user?.home ?? homedir(), user) ? {} : { HOME: path };
  return { path, env, remove: () => scratch?.remove() };
}

/** A new or empty directory is handed over; another one has an owner already, and is left alone. */
function takeGiven(path: string, user: AgentUser | null): string {
  const failed = (cause: unknown): TitoError => {
    const { code } = cause as NodeJS.ErrnoException;
    return new TitoError("cannot_write", `--harness-home ${path} can not be written to: ${code ?? String(cause)}`, {
      cause,
      hint:
        user !== null && (code === "EACCES" || code === "EPERM")
          ? `it must belong to the agent: chown -R ${user.name} ${path}`
          : "name a directory that can be written to",
    });
  };
  try {
    const made = mkdirSync(path, { recursive: true, mode: 0o700 });
    if (user !== null) handOver(path, made, user);
    asUser(user, () => tryWriting(path));
    return path;
  } catch (cause) {
    throw TitoError.is(cause) ? cause : failed(cause);
  }
}

/** `made`: the topmost directory that did not exist before. */
function handOver(path: string, made: string | undefined, user: AgentUser): void {
  if (made === undefined && readdirSync(path).length > 0) return;
  const top = made ?? path;
  for (let dir = path; dir.startsWith(top); dir = dirname(dir)) lchownSync(dir, user.uid, user.gid);
}

/** True when `user`, or we where it is null, may make files in `directory`. */
export function isWritable(directory: string, user: AgentUser | null): boolean {
  try {
    if (user === null) accessSync(directory, constants.W_OK | constants.X_OK);
    else asUser(user, () => tryWriting(directory));
    return true;
  } catch {
    return false;
  }
}

/** access(2) asks for the real user, who is root still. */
function tryWriting(directory: string): void {
  rmdirSync(mkdtempSync(join(directory, ".tito-")));
}
