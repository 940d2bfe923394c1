/** A real engine with a script, a real sidecar, a real harness, and what lies on disk afterwards. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readTrajectory, type TrajectoryLog, type TurnRecord, turnsInCommitOrder } from "@tito/format";
import { type EngineOptions, startEngine } from "@tito/reference-engine";
import { type SidecarOptions, startSidecar } from "@tito/sidecar";
import { differencesToEngine, findInstallation, type HarnessOutcome, readEngineLog, runHarness } from "@tito/testkit";
import { expect, onTestFinished, test } from "vitest";
import type { RunOptions } from "../../src/harness/adapter.js";
import { findHarness } from "../../src/harness/registry.js";
import { writeHarness } from "../../src/harness/write-files.js";

/** Long enough for the slowest cold start on a busy machine. */
const DEADLINE_MS = 120_000;

export interface StageOptions {
  engine?: EngineOptions;
  sidecar?: Partial<SidecarOptions>;
  contextTokens?: number;
  outputTokens?: number;
}

export interface Stage {
  engineUrl: string;
  home: string;
  cwd: string;
  run(prompt: string, options?: RunOptions & { interrupt?: AbortSignal; deadlineMs?: number }): Promise<HarnessOutcome>;
  /** Queues a fault in the engine. */
  fault(fault: object, more?: { times?: number; nth?: number }): Promise<void>;
  /** Waits until a gauge of the engine is high enough. */
  wait(gauge: string, atLeast: number): Promise<void>;
  /** Seals, reads the trajectory back strictly, and compares every turn with the engine's own log. */
  sealed(): Promise<Captured>;
}

interface Captured {
  log: TrajectoryLog;
  turns: TurnRecord[];
  /** Turns of one lane. */
  lane(lane: string): TurnRecord[];
}

/** A test with a real harness; loudly skipped where it is not installed. */
export function harnessTest(name: string, title: string, body: (installed: string) => Promise<void>): void {
  const found = findInstallation(name);
  const missing = "missing" in found ? found.missing : null;
  if (missing !== null) console.warn(`SKIPPED ${name}: ${missing}`);
  test.runIf(missing === null)(`${name}: ${title}`, () => body(name));
}

/** Starts engine and sidecar for one harness. Everything ends with the test. */
export async function stage(name: string, script: unknown, options: StageOptions = {}): Promise<Stage> {
  const found = findInstallation(name);
  if ("missing" in found) throw new Error(`${name} is ${found.missing}`);
  const adapter = findHarness(found.adapter);
  const root = mkdtempSync(join(tmpdir(), `tito-e2e-${name}-`));
  onTestFinished(() => rmSync(root, { recursive: true, force: true, maxRetries: 3 }));
  const scriptFile = join(root, "script.json");
  const logFile = join(root, "engine.ndjson");
  writeFileSync(scriptFile, JSON.stringify(script));
  const engine = await startEngine({
    policy: `script:${scriptFile}`,
    testMode: true,
    logFile,

    ...options.engine,
  });
  onTestFinished(() => engine.close());
  const out = join(root, "out");
  const events: string[] = [];
  const sidecar = await startSidecar(
    {
      upstream: engine.url,
      model: "policy",
      trajectoryId: "t1",
      harness: adapter.rules,
      secrets: {},
      out,
      ...options.sidecar,
    },
    { log: (level, event, fields) => void events.push(JSON.stringify({ level, event, ...fields })) },
  );
  const outcomes: HarnessOutcome[] = [];
  onTestFinished(async ({ task }) => {
    await sidecar.close("test");
    if (task.result?.state !== "fail") return;
    console.error(events.join("\n"));
    for (const outcome of outcomes)
      console.error(
        JSON.stringify({ ...outcome, stdout: outcome.stdout.slice(-3000), stderr: outcome.stderr.slice(-3000) }),
      );
  });
  const probeEntries = readEngineLog(logFile).length;
  const home = join(root, "home");
  const cwd = join(root, "work");
  const setup = writeHarness(adapter, {
    endpoint: sidecar.endpoint,
    model: "policy",
    home,
    contextTokens: options.contextTokens ?? 131_072,
    outputTokens: options.outputTokens ?? 8_192,
  });
  return {
    engineUrl: engine.url,
    home,
    cwd,
    async run(prompt, { interrupt, deadlineMs = DEADLINE_MS, ...runOptions } = {}) {
      const argv = setup.argv(prompt, runOptions);
      const more = interrupt === undefined ? {} : { interrupt };
      const outcome = await runHarness({
        argv,
        env: setup.env,
        home,
        cwd,
        binDirs: found.binDirs,
        deadlineMs,
        ...more,
      });
      outcomes.push(outcome);
      return outcome;
    },
    async fault(fault, { times = 1, nth } = {}) {
      await postJson(`${engine.url}/test/faults`, { times, on: nth === undefined ? {} : { nth }, fault });
    },
    async wait(gauge, atLeast) {
      await postJson(`${engine.url}/test/wait`, { gauge, atLeast });
    },
    async sealed() {
      await sidecar.close("test");
      const log = readTrajectory(join(out, "t1"), { mode: "strict" });
      expect(log.complete).toBe(true);
      expect(differencesToEngine(log, readEngineLog(logFile), probeEntries)).toEqual([]);
      const turns = turnsInCommitOrder(log).map((turn) => turn.record);
      return { log, turns, lane: (lane) => turns.filter((turn) => turn.lane === lane) };
    },
  };
}

async function postJson(url: string, body: object): Promise<void> {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${url}: ${response.status} ${await response.text()}`);
}
