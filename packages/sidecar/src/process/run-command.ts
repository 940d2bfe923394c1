/**
 * `tito run -- COMMAND`: a sidecar as a child, COMMAND pointed at it, a seal, COMMAND's exit code. Nothing is written to standard output:
 * it belongs to COMMAND.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { accessSync, chmodSync, constants, lchownSync, statSync } from "node:fs";
import { constants as osConstants } from "node:os";
import { delimiter, join } from "node:path";
import { lossInWords, makeRunId, TitoError } from "@tito/format";
import { readConfig } from "../config/config.js";
import { type Endpoint, removeEndpointFile, writeEndpointFile } from "../config/endpoint.js";
import { type FlagValues, logLevel, one, optionsFromFlags, readSecrets, type Secrets } from "../config/flags.js";
import type { SealReport } from "../trajectory/seal.js";
import { type AgentUser, asUser, findAgentUser } from "./agent-user.js";
import { commandEnvironment } from "./command-environment.js";
import { makeScratchDir } from "./scratch-dir.js";
import { sealRequest } from "./seal-request.js";
import { SidecarProcess } from "./sidecar-process.js";

const FAILED_EXIT = 125;
const NOT_EXECUTABLE_EXIT = 126;
const NOT_FOUND_EXIT = 127;
const FORWARDED = ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR2"] as const;

export interface RunIo {
  /** How to start `tito sidecar`, for example `[process.execPath, "main.js", "sidecar"]`. */
  sidecarArgv: readonly string[];
  env: Readonly<Record<string, string | undefined>>;
  /** One line for the user. */
  warn(message: string): void;
  /**
   * For a COMMAND that needs the endpoint before it starts, as a harness with config files does: called once the sidecar listens, gives
   * the whole command line and variables on top of those that every COMMAND gets. Its program must be COMMAND's first word.
   */
  prepare?(endpoint: Endpoint): { argv: readonly string[]; env: Readonly<Record<string, string>> };
}

/** Runs COMMAND against a sidecar of its own. Resolves with the exit code. @throws TitoError `usage` before anything was started. */
export async function runCommand(flags: FlagValues, command: readonly string[], io: RunIo): Promise<number> {
  const [program] = command;
  if (program === undefined) throw new TitoError("usage", "no COMMAND", { hint: "tito run [flags] -- COMMAND …" });
  const secrets = completeSecrets(readSecrets(flags));
  readConfig(optionsFromFlags(flags, secrets));
  logLevel(flags);
  if (flags.has("gateway")) throw new TitoError("usage", "--gateway: tito run serves one trajectory");
  const userName = one(flags, "agent-user");
  const user = userName === null ? null : findAgentUser(userName);
  const missing = asUser(user, () => findProblem(program, io.env.PATH ?? "", user));
  if (missing !== null) {
    io.warn(`${program}: ${missing.what}`);
    return missing.exit;
  }
  const sidecar = new SidecarProcess({
    argv: io.sidecarArgv,
    flags: childFlags(flags),
    secrets,
    anchorFd: anchorFd(flags),
    warn: io.warn,
  });
  const endpoint = await sidecar.start();
  if (endpoint === null) return FAILED_EXIT;
  return runAgainst({ sidecar, endpoint, command, secrets, user, flags, io });
}

interface Run {
  sidecar: SidecarProcess;
  endpoint: Endpoint;
  command: readonly string[];
  secrets: Secrets;
  user: AgentUser | null;
  flags: FlagValues;
  io: RunIo;
}

async function runAgainst(run: Run): Promise<number> {
  const { sidecar } = run;
  let place: EndpointPlace | null = null;
  try {
    place = placeEndpoint(run);
    return await untilSealed(run, startCommand(run, place.file));
  } catch (error) {
    // Nothing was started for COMMAND: the sidecar must not outlive us.
    await sidecar.stop();
    throw error;
  } finally {
    place?.remove();
  }
}

async function untilSealed({ sidecar, endpoint, secrets, io }: Run, child: ChildProcess): Promise<number> {
  const stopForwarding = forwardSignals(child, sidecar);
  try {
    const exit = await Promise.race([exitCode(child), sidecar.lost]);
    const report = await seal(endpoint, secrets.ownerKey!);
    await sidecar.stop();
    return judge(exit, report, io);
  } catch (error) {
    io.warn(error instanceof Error ? error.message : String(error));
    child.kill("SIGTERM");
    await exitCode(child);
    await sidecar.stop();
    return FAILED_EXIT;
  } finally {
    stopForwarding();
  }
}

/** A harness that exited happily and left nothing captured did not talk to this sidecar: that must not go unseen. */
function judge(exit: number, report: SealReport, io: RunIo): number {
  const { uncaptured, capture_loss, trajectory_id } = report;
  const lost = [
    ...(uncaptured > 0 ? [`${uncaptured} calls are not on record`] : []),
    ...(capture_loss === null ? [] : [lossInWords(capture_loss)]),
  ];
  if (lost.length > 0) io.warn(`capture is incomplete: ${lost.join("; ")} (trajectory ${trajectory_id})`);
  if (exit !== 0 || report.turns > 0) return exit;
  const why =
    report.calls_without_ids === 0
      ? "COMMAND ended without one recorded call; is it configured to use OPENAI_BASE_URL or the endpoint file?"
      : `${report.calls_without_ids} calls came and none got token ids; the last ended as ${oneLine(report.last_without_ids ?? "")}`;
  io.warn(`nothing was captured: ${why}`);
  return FAILED_EXIT;
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, " ").slice(0, 300);
}

function completeSecrets(secrets: Secrets): Secrets {
  const made = (): string => `tito_${randomBytes(32).toString("base64url")}`;
  return { ...secrets, apiKey: secrets.apiKey ?? made(), ownerKey: secrets.ownerKey ?? made() };
}

/** What the child gets: keys go over the pipe, the endpoint file and the user are ours. */
function childFlags(flags: FlagValues): FlagValues {
  const ours = new Set([
    "api-key-file",
    "owner-key-file",
    "upstream-key-file",
    "hmac-key-file",
    "endpoint-file",
    "agent-user",
    "anchor-fd",
  ]);
  const kept = new Map([...flags].filter(([name]) => !ours.has(name)));
  // A restarted sidecar must find the same trajectory.
  if (!kept.has("trajectory-id")) kept.set("trajectory-id", [`t-${randomBytes(9).toString("hex")}`]);
  // Standard error is COMMAND's too: only what is wrong is said there.
  if (!kept.has("log-level")) kept.set("log-level", ["warn"]);
  if (!kept.has("run-id")) kept.set("run-id", [makeRunId()]);
  return kept;
}

function anchorFd(flags: FlagValues): number | null {
  const text = one(flags, "anchor-fd");
  return text === null ? null : Number(text);
}

interface EndpointPlace {
  file: string;
  remove(): void;
}

/** The file is COMMAND's to read; the directory stays ours, so that nobody puts something else in its place. */
function placeEndpoint({ endpoint, flags, user, io }: Run): EndpointPlace {
  const own = one(flags, "endpoint-file");
  const dir =
    own === null
      ? makeScratchDir({
          prefix: "tito-run-",
          purpose: "the place of the endpoint file",
          instead: "--endpoint-file FILE",
          owner: null,
          out: one(flags, "out"),
          warn: io.warn,
        })
      : null;
  const file = own ?? join(dir!.path, "endpoint.json");
  writeEndpointFile(file, endpoint);
  if (user !== null) lchownSync(file, user.uid, user.gid);
  if (user !== null && dir !== null) chmodSync(dir.path, 0o711);
  return { file, remove: () => (dir === null ? removeEndpointFile(file) : dir.remove()) };
}

function startCommand(run: Run, endpointFile: string): ChildProcess {
  const { user, endpoint, secrets, io } = run;
  const prepared = io.prepare?.(endpoint) ?? { argv: run.command, env: {} };
  const env = commandEnvironment(io.env, { endpoint, endpointFile, upstreamKey: secrets.upstreamKey, user });
  return spawn(prepared.argv[0]!, prepared.argv.slice(1), {
    stdio: "inherit",
    env: { ...env, ...prepared.env },
    ...(user === null ? {} : { uid: user.uid, gid: user.gid }),
  });
}

function exitCode(child: ChildProcess): Promise<number> {
  const code = (status: number | null, signal: NodeJS.Signals | null): number =>
    signal === null ? (status ?? FAILED_EXIT) : 128 + osConstants.signals[signal];
  if (child.exitCode !== null || child.signalCode !== null)
    return Promise.resolve(code(child.exitCode, child.signalCode));
  return new Promise((resolve) => {
    child.once("exit", (status, signal) => resolve(code(status, signal)));
    child.once("error", (error: NodeJS.ErrnoException) =>
      resolve(error.code === "ENOENT" ? NOT_FOUND_EXIT : NOT_EXECUTABLE_EXIT),
    );
  });
}

/** A terminal's Ctrl-C reaches COMMAND by itself: it is in our process group. A second SIGTERM does not wait for anybody. */
function forwardSignals(child: ChildProcess, sidecar: SidecarProcess): () => void {
  let terms = 0;
  const handlers = FORWARDED.map((signal) => {
    const handler = (): void => {
      if (signal === "SIGINT" && process.stdin.isTTY) return;
      if (signal === "SIGTERM" && ++terms > 1) {
        child.kill("SIGKILL");
        sidecar.hurry();
      } else child.kill(signal);
    };
    process.on(signal, handler);
    return { signal, handler };
  });
  return () => {
    for (const { signal, handler } of handlers) process.off(signal, handler);
  };
}

async function seal(endpoint: Endpoint, ownerKey: string): Promise<SealReport> {
  const response = await sealRequest(`${endpoint.anthropic_base_url}/seal`, ownerKey);
  if (response.status !== 200)
    throw new TitoError("incomplete", `the trajectory could not be sealed: ${response.text.slice(0, 300)}`);
  return JSON.parse(response.text) as SealReport;
}

/** Why a program can not be run by `user`, before anything is started for it. Null user: by us. */
function findProblem(program: string, path: string, user: AgentUser | null): { what: string; exit: number } | null {
  const candidates = program.includes("/")
    ? [program]
    : path.split(delimiter).map((dir) => join(dir === "" ? "." : dir, program));
  const found = candidates.map((file) => reach(file, user));
  if (found.includes("runs")) return null;
  if (!found.includes("closed")) return { what: "command not found", exit: NOT_FOUND_EXIT };
  return { what: `permission denied${user === null ? "" : ` for user ${user.name}`}`, exit: NOT_EXECUTABLE_EXIT };
}

function reach(file: string, user: AgentUser | null): "runs" | "closed" | "absent" {
  try {
    const status = statSync(file);
    if (!status.isFile()) return "absent";
    if (user !== null) return mayExecute(status, user) ? "runs" : "closed";
    accessSync(file, constants.X_OK);
    return "runs";
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EACCES" ? "closed" : "absent";
  }
}

/** From the mode bits: access(2) asks for the real user, who is still root. */
function mayExecute({ mode, uid, gid }: { mode: number; uid: number; gid: number }, user: AgentUser): boolean {
  if (user.uid === 0) return (mode & 0o111) !== 0;
  return (mode & (uid === user.uid ? 0o100 : gid === user.gid ? 0o010 : 0o001)) !== 0;
}
