/** The built program as processes: `tito sidecar` and `tito run`, with what they print. */
import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import type { Endpoint } from "../src/index.js";

export const TITO = fileURLToPath(new URL("fixtures/tito.mjs", import.meta.url));
/** Options of Node that make a process measurable. */
export const MEASURABLE = ["--expose-gc", "--import", new URL("fixtures/measure.mjs", import.meta.url).href];

interface Ended {
  code: number | null;
  signal: string | null;
  stderr: string;
}

export interface Process {
  child: ChildProcess;
  ended: Promise<Ended>;
  /** The nth line (from 0) on standard output that begins with `start`. */
  line(start: string, n?: number): Promise<string>;
}

/** Starts a command; it is killed with the test at the latest. */
export function startProcess(argv: readonly string[], env: Record<string, string> = {}): Process {
  const child = spawn(argv[0]!, argv.slice(1), { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, ...env } });
  let stdout = "";
  let stderr = "";
  const watchers = new Set<() => void>();
  child.stdout.on("data", (chunk) => {
    stdout += chunk;
    for (const watcher of watchers) watcher();
  });
  child.stderr.on("data", (chunk) => {
    stderr += chunk;
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const ended = new Promise<Ended>((resolve) =>
    child.once("close", (code, signal) => resolve({ code, signal, stderr })),
  );
  const line = async (start: string, n = 0): Promise<string> => {
    const found = new Promise<string>((resolve) => {
      const check = (): void => {
        const whole = stdout.split("\n").slice(0, -1);
        const one = whole.filter((text) => text.startsWith(start))[n];
        if (one !== undefined) resolve(one);
      };
      watchers.add(check);
      check();
    });
    const lost = ended.then(() => {
      throw new Error(`it ended before it said "${start}": ${stderr}`);
    });
    return Promise.race([found, lost]);
  };
  return { child, ended, line };
}

export interface SidecarProcess extends Process {
  endpoint: Endpoint;
  /** Base URL of the OpenAI dialects, and the key. */
  url: string;
  key: string;
}

/** `tito sidecar`, listening. `node`: options of Node itself; `before`: a command that starts it. */
export async function startSidecarProcess(
  flags: readonly string[],
  options: { node?: readonly string[]; before?: readonly string[]; env?: Record<string, string> } = {},
): Promise<SidecarProcess> {
  const { node = [], before = [], env } = options;
  const started = startProcess([...before, process.execPath, ...node, TITO, "sidecar", ...flags], env);
  const endpoint = JSON.parse(await started.line("{")) as Endpoint;
  return { ...started, endpoint, url: endpoint.openai_base_url, key: endpoint.api_key };
}

export interface Measured {
  /** Bytes. */
  rss: number;
  /** Bytes on the heap and outside of it, after a collection. */
  held: number;
  /** How long the event loop was held, since the last time. */
  lag: { p50Ms: number; p99Ms: number; maxMs: number };
}

/** Asks a measurable process again and again. */
export function createMeasure({ child, line }: Process): () => Promise<Measured> {
  let asked = 0;
  return async () => {
    child.kill("SIGUSR2");
    const text = await line("measured ", asked++);
    return JSON.parse(text.slice("measured ".length)) as Measured;
  };
}
