import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach } from "vitest";
import { type EngineOptions, type RunningEngine, startEngine } from "../../src/index.js";
import { makeModelDirectory } from "./model-directory.js";

/** One model directory a test file, and engines that are closed after each test. */
export function engines(): {
  dir: string;
  start: (options?: EngineOptions) => Promise<RunningEngine>;
  script: (script: unknown) => string;
} {
  const { dir, remove } = makeModelDirectory();
  const running: RunningEngine[] = [];
  let scripts = 0;
  afterEach(async () => {
    await Promise.all(running.splice(0).map((engine) => engine.close()));
  });
  afterAll(remove);
  return {
    dir,
    async start(options = {}) {
      const engine = await startEngine({ weights: dir, testMode: true, ...options });
      running.push(engine);
      return engine;
    },
    script(script) {
      const file = join(dir, `script-${scripts++}.json`);
      writeFileSync(file, JSON.stringify(script));
      return `script:${file}`;
    },
  };
}

export interface JsonReply {
  status: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests read replies the way a client without types does
  body: any;
}

export async function post(url: string, body: unknown, init: RequestInit = {}): Promise<JsonReply> {
  const response = await fetch(url, {
    method: "POST",
    body: JSON.stringify(body),
    ...init,
    headers: { "content-type": "application/json", ...(init.headers as Record<string, string> | undefined) },
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, body: text === "" ? "" : JSON.parse(text) };
}

export async function get(url: string): Promise<JsonReply> {
  const response = await fetch(url);
  const text = await response.text();
  return { status: response.status, headers: response.headers, body: text === "" ? "" : JSON.parse(text) };
}

/** The events of a stream; `[DONE]` as a string. */
// biome-ignore lint/suspicious/noExplicitAny: tests read replies the way a client without types does
export async function streamed(url: string, body: object, init: RequestInit = {}): Promise<any[]> {
  const response = await fetch(url, {
    method: "POST",
    body: JSON.stringify({ stream: true, ...body }),
    headers: { "content-type": "application/json" },
    ...init,
  });
  return eventsOf(await response.text());
}

// biome-ignore lint/suspicious/noExplicitAny: tests read replies the way a client without types does
export function eventsOf(text: string): any[] {
  return text
    .split("\n\n")
    .filter((event) => event.startsWith("data: "))
    .map((event) => event.slice(6))
    .map((data) => (data === "[DONE]" ? data : JSON.parse(data)));
}
