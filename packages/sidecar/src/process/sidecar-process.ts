/**
 * The sidecar as a child of `tito run`. It has its own process group, so that a Ctrl-C meant for the harness does not end it; it gets its
 * keys on a pipe whose end tells it that we are gone. When it crashes it is started again on the same port with the same keys.
 */
import { type ChildProcess, spawn } from "node:child_process";
import type { Writable } from "node:stream";
import { TitoError } from "@tito/format";
import type { Endpoint } from "../config/endpoint.js";
import { type FlagValues, flagArguments, type Secrets } from "../config/flags.js";

const RESTARTS_MAX = 5;
const RESTART_DELAY_MS = 100;
const STOP_TIMEOUT_MS = 10_000;
/** Index of the pipe that carries the keys, and of the inherited anchor descriptor, among the child's descriptors. */
const PARENT_FD = 3;
const ANCHOR_FD = 4;

export interface SidecarProcessOptions {
  /** How to start `tito sidecar`, without its flags. */
  argv: readonly string[];
  flags: FlagValues;
  secrets: Secrets;
  /** Descriptor of ours that the child inherits for anchors. */
  anchorFd: number | null;
  warn(message: string): void;
}

export class SidecarProcess {
  /** Rejects when the sidecar is gone for good. */
  readonly lost: Promise<never>;
  private child: ChildProcess | null = null;
  private stopping = false;
  private restarts = 0;
  private port: number | null = null;
  private reportLost: (error: TitoError) => void = () => undefined;
  private exited: Promise<number | null> = Promise.resolve(null);

  constructor(private readonly options: SidecarProcessOptions) {
    this.lost = new Promise((_resolve, reject) => {
      this.reportLost = reject;
    });
    this.lost.catch(() => undefined);
  }

  /** Starts it and waits for its endpoint. Null: it did not start; its own words about it are on standard error. */
  async start(): Promise<Endpoint | null> {
    const child = this.spawnOnce();
    const endpoint = await firstLine(child, this.exited);
    if (endpoint === null) return null;
    this.port = Number(new URL(endpoint.openai_base_url).port);
    void this.exited.then(() => this.restart());
    return endpoint;
  }

  /** Ends it; resolves when it is gone. One that does not end by itself is killed: COMMAND's exit code must not wait for ever. */
  async stop(): Promise<void> {
    this.stopping = true;
    this.child?.kill("SIGTERM");
    const killer = setTimeout(() => {
      this.options.warn("the sidecar does not end by itself and is killed");
      this.child?.kill("SIGKILL");
    }, STOP_TIMEOUT_MS);
    await this.exited;
    clearTimeout(killer);
  }

  /** Seals without waiting for calls in flight. */
  hurry(): void {
    this.child?.kill("SIGTERM");
    this.child?.kill("SIGTERM");
  }

  private spawnOnce(): ChildProcess {
    const { argv, secrets, anchorFd } = this.options;
    const flags = new Map(this.options.flags);
    flags.set("parent-fd", [String(PARENT_FD)]);
    if (anchorFd !== null) flags.set("anchor-fd", [String(ANCHOR_FD)]);
    if (this.port !== null) flags.set("port", [String(this.port)]);
    const child = spawn(argv[0]!, [...argv.slice(1), ...flagArguments(flags)], {
      stdio: ["ignore", "pipe", "inherit", "pipe", ...(anchorFd === null ? [] : [anchorFd])],
      detached: true,
    });
    this.child = child;
    this.exited = new Promise((resolve) => {
      child.once("exit", (code) => resolve(code));
      child.once("error", () => resolve(null));
    });
    const keys = child.stdio[PARENT_FD] as Writable;
    keys.on("error", () => undefined);
    keys.write(`${JSON.stringify(secrets)}\n`);
    return child;
  }

  private async restart(): Promise<void> {
    if (this.stopping) return;
    if (this.restarts >= RESTARTS_MAX) {
      this.reportLost(new TitoError("internal", `the sidecar crashed ${this.restarts + 1} times and is given up`));
      return;
    }
    this.restarts += 1;
    this.options.warn(
      `the sidecar crashed (exit ${await this.exited}); starting it again, ${this.restarts} of ${RESTARTS_MAX}`,
    );
    await new Promise((resolve) => setTimeout(resolve, RESTART_DELAY_MS * 2 ** (this.restarts - 1)));
    if (this.stopping) return;
    if ((await this.start()) === null) await this.restart();
  }
}

async function firstLine(child: ChildProcess, exited: Promise<unknown>): Promise<Endpoint | null> {
  const line = new Promise<string>((resolve) => {
    let text = "";
    child.stdout?.on("data", (chunk: Buffer) => {
      text += chunk.toString("utf8");
      const end = text.indexOf("\n");
      if (end >= 0) resolve(text.slice(0, end));
    });
  });
  const first = await Promise.race([line, exited.then(() => null)]);
  return first === null ? null : (JSON.parse(first) as Endpoint);
}
