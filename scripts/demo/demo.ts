/** The whole way, from a real harness to training samples, on the embedded engine. `npm run demo` prints it; a test asserts it. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { DemoTask } from "@tito/reference-engine";
import { startEngineProcess, tito } from "./processes.js";
import { type RolloutPlan, type RolloutResult, runRollout } from "./rollout.js";
import { type Fidelity, measureFidelity, readRuns } from "./score.js";

export interface DemoOptions {
  out: string;
  tasks: readonly DemoTask[];
  rolloutsPerTask: number;
  /** Of the engine's draws. */
  seed: number;
  /** Rollouts at a time. */
  parallel: number;
  /** Further flags of `tito run`, such as `--renderer DIR`. */
  runFlags?: readonly string[];
  onStart?(plan: RolloutPlan): void;
  onRollout?(result: RolloutResult): void;
  /** Called with the engine still running, after the rollouts. */
  onMaterialize?(): void;
}

export interface DemoResult {
  rollouts: RolloutResult[];
  samplesFile: string;
  trialsDir: string;
  engineLog: string;
  /** What `tito materialize` printed. */
  table: string;
  fidelity: Fidelity;
}

export async function runDemo(options: DemoOptions): Promise<DemoResult> {
  const trialsDir = join(options.out, "trials");
  const samplesFile = join(options.out, "samples.jsonl");
  const engineLog = join(options.out, "engine.ndjson");
  mkdirSync(trialsDir, { recursive: true });
  const engine = await startEngineProcess({ seed: options.seed, logFile: engineLog });
  try {
    const rollouts = await runAll(planRollouts(options, trialsDir, engine.url), options);
    options.onMaterialize?.();
    const made = await tito(["materialize", trialsDir, "--out", samplesFile, "--format", "jsonl"]);
    if (made.exitCode !== 0) throw new Error(`tito materialize failed with exit code ${made.exitCode}: ${made.stderr}`);
    const fidelity = await measureFidelity(engine.url, readRuns(samplesFile));
    return { rollouts, samplesFile, trialsDir, engineLog, table: made.stdout, fidelity };
  } finally {
    await engine.stop();
  }
}

function planRollouts(options: DemoOptions, trialsDir: string, upstream: string): RolloutPlan[] {
  const demo = process.pid;
  return options.tasks.flatMap((task, taskIndex) =>
    Array.from({ length: options.rolloutsPerTask }, (_, index) => ({
      task,
      demo,
      rollout: taskIndex * options.rolloutsPerTask + index,
      trialDir: join(trialsDir, `${task.id}__${index + 1}`),
      upstream,
      runFlags: options.runFlags ?? [],
    })),
  );
}

async function runAll(plans: readonly RolloutPlan[], options: DemoOptions): Promise<RolloutResult[]> {
  const results: RolloutResult[] = new Array(plans.length);
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let index = next++; index < plans.length; index = next++) {
      options.onStart?.(plans[index]!);
      results[index] = await runRollout(plans[index]!);
      options.onRollout?.(results[index]!);
    }
  };
  await Promise.all(Array.from({ length: options.parallel }, worker));
  return results;
}
