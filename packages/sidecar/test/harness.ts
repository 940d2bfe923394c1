/** What the end-to-end tests share: a real engine with a script, a real sidecar in a fresh directory, and what lies on disk afterwards. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer, request as forward, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type LoggedTurn, readTrajectory, rebuildLines, type TrajectoryLog } from "@tito/format";
import { type EngineOptions, type LogEntry, type RunningEngine, startEngine } from "@tito/reference-engine";
import { onTestFinished } from "vitest";
import { type Sidecar, type SidecarHooks, type SidecarOptions, startSidecar } from "../src/index.js";

export function temporaryDir(): string {
  const dir = mkdtempSync(join(tmpdir(), "tito-sidecar-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** The embedded engine under a script; closed with the test. */
export async function scriptedEngine(
  rules: unknown,
  options: EngineOptions = {},
): Promise<RunningEngine & { script: string }> {
  const script = join(temporaryDir(), "script.json");
  writeFileSync(script, JSON.stringify(rules));
  return { ...(await engineOn(script, options)), script };
}

/** An engine under a script that is there already. */
export async function engineOn(script: string, options: EngineOptions = {}): Promise<RunningEngine> {
  const engine = await startEngine({
    policy: `script:${script}`,
    testMode: true,
    ...options,
  });
  onTestFinished(() => engine.close());
  return engine;
}

/** A server before the engine: `intercept` answers by itself (true), or lets a request through. */
export async function serverBefore(
  engine: { url: string },
  intercept: (request: IncomingMessage, response: ServerResponse) => boolean,
): Promise<{ url: string; requests: IncomingMessage[] }> {
  const requests: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    requests.push(request);
    if (intercept(request, response)) return;
    const { method, url, headers } = request;
    const onward = forward(`${engine.url}${url}`, { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    onward.on("error", () => response.destroy());
    response.on("close", () => onward.destroy());
    request.pipe(onward);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests };
}

export interface Started {
  sidecar: Sidecar;
  out: string;
  /** Base URL of the OpenAI dialects. */
  url: string;
  key: string;
  /** Seals, and reads the trajectory back. */
  sealed(): Promise<TrajectoryLog>;
  /** Resolves when the sidecar has logged `event` for the `count`th time. */
  logged(event: string, count?: number): Promise<void>;
}

/** A sidecar against an engine; sealed with the test at the latest. */
export async function startTestSidecar(
  engine: { url: string },
  options: Partial<SidecarOptions> = {},
  hooks: SidecarHooks = {},
): Promise<Started> {
  const out = options.out ?? temporaryDir();
  const logs: string[] = [];
  const events: string[] = [];
  const watchers = new Set<() => void>();
  const log: SidecarHooks["log"] = (level, event, fields) => {
    logs.push(JSON.stringify({ level, event, ...fields }));
    events.push(event);
    for (const watcher of watchers) watcher();
  };
  const logged = (event: string, count = 1): Promise<void> =>
    new Promise((resolve) => {
      const check = (): void => {
        if (events.filter((one) => one === event).length < count) return;
        watchers.delete(check);
        resolve();
      };
      watchers.add(check);
      check();
    });
  const sidecar = await startSidecar(
    { upstream: engine.url, model: "policy", trajectoryId: "t1", secrets: {}, ...options, out },
    { log, ...hooks },
  );
  onTestFinished(async ({ task }) => {
    await sidecar.close("test").catch(() => undefined);
    if (task.result?.state === "fail") console.error(logs.join("\n"));
  });
  const { endpoint } = sidecar;
  const sealed = async (): Promise<TrajectoryLog> => {
    await sidecar.close("test");
    return readTrajectory(join(out, endpoint.trajectory_id), { mode: "strict" });
  };
  return { sidecar, out, url: endpoint.openai_base_url, key: endpoint.api_key, sealed, logged };
}

export type ReadTurn = { promptIds: number[]; sampledIds: number[] } & Pick<LoggedTurn, "segment" | "record">;

/** Turns in commit order with their rebuilt prompt ids. */
export function turnsOf(log: TrajectoryLog): ReadTurn[] {
  const lines = rebuildLines(log);
  return lines.turns.map((turn) => ({
    promptIds: [...lines.promptIds(turn)],
    sampledIds: [...turn.record.sampled_ids],
    segment: turn.segment,
    record: turn.record,
  }));
}

/** Calls a route that only an engine in test mode has. */
export async function engineTest(engine: { url: string }, path: string, body?: unknown): Promise<unknown> {
  const init =
    body === undefined
      ? {}
      : { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  const response = await fetch(`${engine.url}/test/${path}`, init);
  if (!response.ok) throw new Error(`/test/${path}: ${await response.text()}`);
  return response.json();
}

/** What the engine itself says it saw and sampled, without the sidecar's probes. */
export async function engineLog(engine: { url: string }): Promise<LogEntry[]> {
  const { entries } = (await engineTest(engine, "log")) as { entries: LogEntry[] };
  return entries.filter((entry) => entry.seed !== 1);
}

/** One chat request by plain fetch, so that nothing interprets the answer. */
export function postChat(
  started: { url: string; key: string },
  body: Record<string, unknown>,
  headers: Record<string, string> = {},
  signal?: AbortSignal,
): Promise<Response> {
  return fetch(`${started.url}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${started.key}`, ...headers },
    body: JSON.stringify({ model: "policy", ...body }),
    ...(signal === undefined ? {} : { signal }),
  });
}

export const user = (content: string): { role: "user"; content: string } => ({ role: "user", content });

/** Reads a stream event by event, as the bytes come. */
export async function* readEvents(response: Response): AsyncGenerator<string> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const bytes of response.body!) {
    text += decoder.decode(bytes, { stream: true });
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      yield text.slice(0, end);
      text = text.slice(end + 2);
    }
  }
}

/** All files below a directory, as one text each. */
export function filesBelow(dir: string): { path: string; bytes: Buffer }[] {
  return readdirSync(dir, { recursive: true, encoding: "utf8" })
    .map((name) => join(dir, name))
    .filter((path) => statSync(path).isFile())
    .map((path) => ({ path, bytes: readFileSync(path) }));
}

/** Something that happens once: what waits for it, and what makes it happen. */
export function signal(): [happened: Promise<void>, happen: () => void] {
  let happen: () => void = () => undefined;
  const happened = new Promise<void>((resolve) => {
    happen = resolve;
  });
  return [happened, happen];
}
