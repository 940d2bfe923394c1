/** `tito sidecar`: one process, from its flags to its seal. The first line on standard output is the endpoint; logs go to standard error. */
import { Socket } from "node:net";
import { createInterface } from "node:readline";
import { TitoError } from "@tito/format";
import { type FlagValues, logLevel, one, optionsFromFlags, readSecrets, type Secrets } from "../config/flags.js";
import { createLog, type Log } from "../config/log.js";
import { asObject, asString } from "../json/narrow.js";
import { type Sidecar, startSidecar } from "./sidecar.js";

const CRASH_EXIT = 70;

/**
 * Runs until a signal, or the end of the process that started it, seals. Resolves with the exit code.
 * @throws TitoError when it can not start.
 */
export async function sidecarCommand(flags: FlagValues, stdout: (line: string) => void): Promise<number> {
  const log = createLog((line) => void process.stderr.write(line), logLevel(flags));
  const parent = openParent(flags);
  const secrets = parent === null ? readSecrets(flags) : await parent.secrets;
  const hmacKey = secrets.hmacKey === null ? null : Buffer.from(secrets.hmacKey, "utf8");
  const sidecar = await startSidecar(optionsFromFlags(flags, secrets), { log, hmacKey });
  const die = dieLoudly(sidecar, log);
  const stop = stopSignal(sidecar, log, parent?.ended ?? null);
  stdout(`${JSON.stringify(sidecar.endpoint)}\n`);
  const reason = await stop;
  try {
    await sidecar.close(reason);
  } catch (error) {
    if (TitoError.is(error)) throw error;
    die(error);
  }
  return 0;
}

/** A bug is recorded and fatal: a half-alive recorder would be worse than none. */
function dieLoudly(sidecar: Sidecar, log: Log): (error: unknown) => never {
  const die = (error: unknown): never => {
    const detail = error instanceof Error ? (error.stack ?? error.message) : String(error);
    sidecar.crashed(detail);
    log("error", "crash", { detail });
    process.exit(CRASH_EXIT);
  };
  process.on("uncaughtException", die);
  return die;
}

/** The first signal seals, waiting for calls in flight; the second does not wait. */
function stopSignal(sidecar: Sidecar, log: Log, parentEnded: Promise<void> | null): Promise<string> {
  return new Promise((resolve) => {
    let stopping = false;
    const stop = (reason: string): void => {
      log("info", stopping ? "hurrying" : "stopping", { reason });
      if (stopping) sidecar.hurry();
      stopping = true;
      resolve(reason);
    };
    for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(signal, () => stop(signal));
    void parentEnded?.then(() => stop("parent_ended"));
  });
}

/** The descriptor on which the starting process hands the keys over, and whose end means that it is gone. */
function openParent(flags: FlagValues): { secrets: Promise<Secrets>; ended: Promise<void> } | null {
  const fd = one(flags, "parent-fd");
  if (fd === null) return null;
  if (!/^\d{1,5}$/.test(fd)) throw new TitoError("usage", "--parent-fd: not a descriptor");
  // A socket, not a file stream: once the keys are there, a pending read of it must not keep a sidecar alive that has failed to start.
  const input = new Socket({ fd: Number(fd), readable: true, writable: false });
  const lines = createInterface({ input });
  const ended = new Promise<void>((resolve) => {
    input.on("error", () => resolve());
    lines.on("close", resolve);
  });
  const secrets = new Promise<Secrets>((resolve, reject) => {
    lines.once("line", (line) => {
      input.unref();
      resolve(readHandedKeys(line));
    });
    void ended.then(() => reject(new TitoError("usage", "--parent-fd: no keys came")));
  });
  return { secrets, ended };
}

function readHandedKeys(line: string): Secrets {
  const keys = asObject(JSON.parse(line));
  return {
    apiKey: asString(keys?.apiKey),
    ownerKey: asString(keys?.ownerKey),
    upstreamKey: asString(keys?.upstreamKey),
    hmacKey: asString(keys?.hmacKey),
  };
}
