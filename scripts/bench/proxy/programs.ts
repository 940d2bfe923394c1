/** The programs that are measured, each a process of its own: the engine that replays, the bare pipe, the sidecar as it ships. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Call } from "./conversation.js";

const BENCH = resolve(import.meta.dirname, "..");
export const SIDECAR_PROGRAM = resolve(BENCH, "../../packages/cli/dist/tito-sidecar.mjs");
export const MAIN_PROGRAM = resolve(BENCH, "../../packages/cli/dist/main.js");
export const ADMIN_KEY = "bench-admin-key";

export interface Program {
  child: ChildProcess;
  /** The first line on standard output. */
  line: string;
  /** Milliseconds from spawn to that line. */
  startMs: number;
  stop(): Promise<void>;
}

/** Starts Node on `args`; resolves with its first line. */
export function startProgram(args: readonly string[]): Promise<Program> {
  return startProgramOf(process.execPath, args);
}

/** Starts `file` on `args`; resolves with its first line. */
export async function startProgramOf(file: string, args: readonly string[]): Promise<Program> {
  const startedMs = performance.now();
  const child = spawn(file, args, { stdio: ["ignore", "pipe", "inherit"] });
  const exited = new Promise<number | null>((done) => child.once("exit", done));
  const line = await new Promise<string>((found, fail) => {
    let text = "";
    child.stdout?.on("data", (part: Buffer) => {
      text += part.toString();
      const end = text.indexOf("\n");
      if (end >= 0) found(text.slice(0, end));
    });
    void exited.then((code) => fail(new Error(`${args.join(" ")} ended with ${code} before its first line`)));
  });
  const startMs = performance.now() - startedMs;
  const stop = async (): Promise<void> => {
    child.kill("SIGTERM");
    await exited;
  };
  return { child, line, startMs, stop };
}

/** Programs and directories of one benchmark, all gone with `close`. */
export class Bench {
  readonly dir = mkdtempSync(join(tmpdir(), "tito-bench-proxy-"));
  private readonly programs: Program[] = [];
  private files = 0;

  async engine(calls: readonly Call[], options: { streamsIds: boolean; chunkMs?: number }): Promise<string> {
    const file = join(this.dir, `replies-${this.files++}.json`);
    const replies = Object.fromEntries(calls.map(({ key, body, chunks }) => [key, { body, chunks }]));
    writeFileSync(file, JSON.stringify({ replies, chunkMs: 0, ...options }));
    return (await this.start([join(BENCH, "mock-engine.mjs"), file])).line;
  }

  async pipe(target: string): Promise<Program> {
    return this.start([join(BENCH, "raw-pipe.mjs"), target]);
  }

  /** A gateway: every trajectory that a request names is made. */
  async gateway(
    upstream: string,
    flags: readonly string[] = [],
  ): Promise<{ origin: string; out: string; program: Program }> {
    const out = join(this.dir, `out-${this.files++}`);
    const keyFile = join(this.dir, "key");
    writeFileSync(keyFile, ADMIN_KEY, { mode: 0o600 });
    const program = await this.start([
      SIDECAR_PROGRAM,
      ...["--upstream", upstream, "--model", "policy", "--engine", "vllm", "--out", out, "--log-level", "error"],
      ...["--gateway", "--api-key-file", keyFile, ...flags],
    ]);
    const endpoint = JSON.parse(program.line) as { openai_base_url: string };
    return { origin: new URL(endpoint.openai_base_url).origin, out, program };
  }

  async start(args: readonly string[]): Promise<Program> {
    const program = await startProgram(args);
    this.programs.push(program);
    return program;
  }

  async close(): Promise<void> {
    for (const program of this.programs.reverse()) await program.stop();
    rmSync(this.dir, { recursive: true, force: true });
  }
}

/** Resident memory of a process in MiB. Linux only, as is the bench. */
export function residentMib(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? Number.NaN) / 1024;
}

/** Processor milliseconds that a process has used, to 10 ms. Linux only. */
export function processorMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)!.split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}
