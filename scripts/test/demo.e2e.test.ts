import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { demoTasks } from "@tito/reference-engine";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type DemoResult, runDemo } from "../demo/demo.js";
import { root, startEngineProcess, tito } from "../demo/processes.js";
import { measureFidelity, readRuns } from "../demo/score.js";
import { EASY_TASK, GRADED_TASKS } from "../demo/tasks.js";
import { expectEachTrainedTokenIsTheEngines, readEngineLog } from "./engine-log.js";

const DIFFERENCE_MAX = 1e-5;
const dir = mkdtempSync(join(tmpdir(), "tito-demo-test-"));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

describe("the demo, with real Pi and the trained policy", () => {
  let demo: DemoResult;
  beforeAll(async () => {
    demo = await runDemo({
      out: join(dir, "pi"),
      tasks: [EASY_TASK, GRADED_TASKS[0]!],
      rolloutsPerTask: 4,
      seed: 7,
      parallel: 2,
    });
  });

  it("captures every rollout and Pi ends each one happily", () => {
    expect(demo.rollouts.map(({ exitCode, stderr }) => ({ exitCode, stderr: exitCode === 0 ? "" : stderr }))).toEqual(
      demo.rollouts.map(() => ({ exitCode: 0, stderr: "" })),
    );
    expect(readRuns(demo.samplesFile)).toHaveLength(8);
  });

  it("trains each token behind exactly the prefix that the engine saw, with the log probability of its draw", () => {
    const runs = readRuns(demo.samplesFile);
    const compared = expectEachTrainedTokenIsTheEngines(runs, readEngineLog(demo.engineLog));
    expect(compared).toBe(runs.reduce((sum, run) => sum + run.coverage.trained_tokens, 0));
    expect(compared).toBeGreaterThan(100);
  });

  it("accounts for every captured token", () => {
    for (const { coverage } of readRuns(demo.samplesFile)) {
      const masked = Object.values(coverage.masked).reduce((sum: number, tokens) => sum + (tokens ?? 0), 0);
      expect(coverage.captured_tokens).toBe(coverage.trained_tokens + masked);
    }
  });

  it("finds the recorded log probabilities again when the engine scores the materialized tokens", () => {
    expect(demo.fidelity.maxDifference).toBeLessThanOrEqual(DIFFERENCE_MAX);
    expect(demo.fidelity.correlation).toBeGreaterThan(0.999);
  });

  it("keeps the reward that the verifier gave", () => {
    const rewards = new Map(demo.rollouts.map(({ plan, reward }) => [plan.trialDir.split("/").at(-1), reward]));
    for (const run of readRuns(demo.samplesFile)) expect(run.reward).toBe(rewards.get(run.trial_id));
  });

  it("leaves trajectories that verify", async () => {
    const verified = await tito(["verify", demo.trialsDir]);
    expect(verified).toMatchObject({ exitCode: 0 });
  });
});

describe("the official client without streaming", () => {
  it("gives samples of the same kind: exact prefixes, exact log probabilities", async () => {
    const out = join(dir, "no-streaming");
    mkdirSync(out);
    const engineLog = join(out, "engine.ndjson");
    const engine = await startEngineProcess({ seed: 3, logFile: engineLog });
    try {
      for (const [index, task] of demoTasks("sum", 3, 11).entries()) {
        const trial = join(out, `trial-${index}`);
        mkdirSync(trial);
        const command = [process.execPath, join(root, "scripts/test/programs/openai-loop.mjs"), task.prompt];
        const flags = ["--upstream", engine.url, "--model", "policy", "--out", join(trial, "tito")];
        const run = await tito(["run", ...flags, "--", ...command], { cwd: trial });
        expect(run, run.stderr).toMatchObject({ exitCode: 0 });
      }
      const samples = join(out, "samples.jsonl");
      expect(await tito(["materialize", out, "--out", samples])).toMatchObject({ exitCode: 0 });
      const runs = readRuns(samples);
      expect(runs).toHaveLength(3);
      const compared = expectEachTrainedTokenIsTheEngines(runs, readEngineLog(engineLog));
      expect(compared).toBeGreaterThan(50);
      expect(compared).toBe(runs.reduce((sum, run) => sum + run.coverage.captured_tokens, 0));
      expect((await measureFidelity(engine.url, runs)).maxDifference).toBeLessThanOrEqual(DIFFERENCE_MAX);
    } finally {
      await engine.stop();
    }
  });
});
