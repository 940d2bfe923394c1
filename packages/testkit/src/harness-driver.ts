/**
 * Runs a real harness: fresh environment, no terminal, a deadline, and nothing left behind.
 * The environment is built from nothing, so that no setting of the machine and no proxy of it can help or disturb.
 */
import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { execa } from "execa";

export interface HarnessRun {
  /** Command and arguments, as an adapter gives them. */
  argv: readonly string[];
  /** What the adapter adds to the environment. */
  env: Readonly<Record<string, string>>;
  home: string;
  /** Directory in which it works; becomes a git repository, because agents look for one. */
  cwd: string;
  /** Directories that come first in PATH: where the harness is installed, and the Node that it needs. */
  binDirs: readonly string[];
  deadlineMs: number;
  /** Interrupts the harness (SIGINT, as Ctrl-C would). One that does not end within ten seconds is killed. */
  interrupt?: AbortSignal;
}

export interface HarnessOutcome {
  /** Null when a signal ended it. */
  exitCode: number | null;
  signal: string | null;
  timedOut: boolean;
  stdout: string;
  stderr: string;
}

const INTERRUPT_GRACE_MS = 10_000;
/** Bytes of output kept per stream; a harness that says more has gone wild. */
const OUTPUT_BYTES_MAX = 8 * 1024 * 1024;

/** Runs it to its end. Never throws for what the harness does; a missing command is exit code 127. */
export async function runHarness(run: HarnessRun): Promise<HarnessOutcome> {
  const [command, ...args] = run.argv;
  if (command === undefined) throw new Error("a harness needs a command");
  mkdirSync(run.cwd, { recursive: true });
  const env = baseEnvironment(run);
  await execa("git", ["init", "-q"], { cwd: run.cwd, env, extendEnv: false });
  const child = execa(command, args, {
    cwd: run.cwd,
    env: { ...env, ...run.env },
    extendEnv: false,
    stdin: "ignore",
    reject: false,
    // A group of its own: what the harness left running goes with it.
    detached: true,
    maxBuffer: OUTPUT_BYTES_MAX,
  });
  let timedOut = false;
  const end = (): void => {
    timedOut = true;
    killGroup(child.pid, "SIGKILL");
  };
  let deadline = setTimeout(end, run.deadlineMs);
  const interrupt = (): void => {
    killGroup(child.pid, "SIGINT");
    clearTimeout(deadline);
    deadline = setTimeout(end, INTERRUPT_GRACE_MS);
  };
  run.interrupt?.addEventListener("abort", interrupt, { once: true });
  try {
    const result = await child;
    const missing = result.code === "ENOENT";
    return {
      exitCode: missing ? 127 : (result.exitCode ?? null),
      signal: result.signal ?? null,
      timedOut,
      stdout: String(result.stdout ?? ""),
      stderr: String(result.stderr ?? ""),
    };
  } finally {
    run.interrupt?.removeEventListener("abort", interrupt);
    clearTimeout(deadline);
    killGroup(child.pid, "SIGKILL");
  }
}

function baseEnvironment(run: HarnessRun): Record<string, string> {
  const path = [...run.binDirs, dirname(process.execPath), "/usr/local/bin", "/usr/bin", "/bin"];
  return {
    HOME: run.home,
    PATH: path.join(":"),
    TERM: "dumb",
    LANG: "C.UTF-8",
    NO_COLOR: "1",
    CI: "1",
  };
}

function killGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // The group is gone already.
  }
}
