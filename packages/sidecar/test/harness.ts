/** What the end-to-end tests share: a real engine with a script, a real sidecar in a fresh directory, and what lies on disk afterwards. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readTrajectory, rebuildLines, type TrajectoryLog } from "@tito/format";
import { type EngineOptions, type RunningEngine, startEngine } from "@tito/reference-engine";
import { onTestFinished } from "vitest";
import { type Sidecar, type SidecarOptions, startSidecar } from "../src/index.js";

export function temporaryDir(): string {
  const dir = mkdtempSync(join(tmpdir(), "tito-sidecar-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** The embedded engine under a script; closed with the test. */
export async function scriptedEngine(rules: unknown, options: EngineOptions = {}): Promise<RunningEngine> {
  const dir = temporaryDir();
  const script = join(dir, "script.json");
  writeFileSync(script, JSON.stringify(rules));
  const engine = await startEngine({
    policy: `script:${script}`,
    testMode: true,
    ...(process.env["W"] ? { weights: process.env["W"] } : {}),
    ...options,
  });
  onTestFinished(() => engine.close());
  return engine;
}

export interface Started {
  sidecar: Sidecar;
  out: string;
  url: string;
  key: string;
  /** Seals, and reads the trajectory back. */
  sealed(): Promise<TrajectoryLog>;
}

/** A sidecar against an engine; sealed with the test at the latest. */
export async function startTestSidecar(engine: RunningEngine, options: Partial<SidecarOptions> = {}): Promise<Started> {
  const out = options.out ?? temporaryDir();
  const lines: string[] = [];
  const sidecar = await startSidecar(
    { upstream: engine.url, model: "policy", trajectoryId: "t1", secrets: {}, ...options, out },
    { log: (level, event, fields) => void lines.push(JSON.stringify({ level, event, ...fields })) },
  );
  onTestFinished(async ({ task }) => {
    await sidecar.close("test");
    if (task.result?.state === "fail") console.error(lines.join("\n"));
  });
  const { endpoint } = sidecar;
  const sealed = async (): Promise<TrajectoryLog> => {
    await sidecar.close("test");
    return readTrajectory(join(out, endpoint.trajectory_id), { mode: "strict" });
  };
  return { sidecar, out, url: endpoint.openai_base_url, key: endpoint.api_key, sealed };
}

/** Turns in commit order with their rebuilt prompt ids. */
export function turnsOf(
  log: TrajectoryLog,
): {
  promptIds: number[];
  sampledIds: number[];
  segment: number;
  record: TrajectoryLog["segments"][number]["turns"][number]["record"];
}[] {
  const lines = rebuildLines(log);
  return lines.turns.map((turn) => ({
    promptIds: [...lines.promptIds(turn)],
    sampledIds: [...turn.record.sampled_ids],
    segment: turn.segment,
    record: turn.record,
  }));
}

/** Queues a fault in the engine. */
export async function queueFault(engine: RunningEngine, fault: unknown): Promise<void> {
  const response = await fetch(`${engine.url}/test/faults`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(fault),
  });
  if (!response.ok) throw new Error(`the fault was refused: ${await response.text()}`);
}
