import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { OutputManifest, RolloutRun } from "@tito/materializer";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { rendererFlags } from "../demo/bundle.js";
import { type DemoResult, runDemo } from "../demo/demo.js";
import { root, startEngineProcess, tito } from "../demo/processes.js";
import { readRuns } from "../demo/score.js";
import { EASY_TASK, GRADED_TASKS } from "../demo/tasks.js";
import { expectEachTrainedTokenIsTheEngines, readEngineLog } from "./engine-log.js";

const dir = mkdtempSync(join(tmpdir(), "tito-renderer-test-"));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

/** What a trainer reads of a run: ids, masks, log probabilities. */
const arrays = (runs: readonly RolloutRun[]) =>
  new Map(
    runs.map((run) => [
      run.trial_id,
      run.samples.map(({ tokens, loss_mask, logprobs }) => ({ tokens, loss_mask, logprobs })),
    ]),
  );

interface Figures {
  runs: number;
  samples: number;
  captured: number;
  trained: number;
  /** Length of all samples: what a trainer has to compute. */
  tokens: number;
}

function figuresOf(runs: readonly RolloutRun[]): Figures {
  const sum = (read: (run: RolloutRun) => number): number => runs.reduce((total, run) => total + read(run), 0);
  return {
    runs: runs.length,
    samples: sum((run) => run.samples.length),
    captured: sum((run) => run.coverage.captured_tokens),
    trained: sum((run) => run.coverage.trained_tokens),
    tokens: sum((run) => run.samples.reduce((total, sample) => total + sample.tokens.length, 0)),
  };
}

function print(name: string, { runs, samples, captured, trained, tokens }: Figures): void {
  const ratio = (trained / captured).toFixed(3);
  console.log(
    `${name}: ${runs} runs, ${samples} samples of ${tokens} tokens, ${trained} of ${captured} sampled tokens train (${ratio})`,
  );
}

describe("the demo, with real Pi and the trained policy, whoever renders", () => {
  const demos = new Map<string, DemoResult>();
  const run = async (name: string, runFlags: readonly string[]): Promise<void> => {
    const out = join(dir, name);
    demos.set(
      name,
      await runDemo({ out, tasks: [EASY_TASK, GRADED_TASKS[0]!], rolloutsPerTask: 2, seed: 7, parallel: 2, runFlags }),
    );
  };
  const runsOf = (name: string): RolloutRun[] => readRuns(demos.get(name)!.samplesFile);

  // One after the other: the rollouts' working directories, and so their prompts, are the same ones each time.
  beforeAll(async () => {
    await run("engine", []);
    await run("renderer", await rendererFlags(dir, false));
    await run("incremental", await rendererFlags(dir, true));
  }, 300_000);

  it("ends every rollout happily", () => {
    for (const { rollouts } of demos.values())
      for (const { exitCode, stderr } of rollouts) expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
  });

  it("gives identical ids, masks and log probabilities through the engine's rendering and the bundle's", () => {
    expect(arrays(runsOf("renderer"))).toEqual(arrays(runsOf("engine")));
    expect(figuresOf(runsOf("engine")).trained).toBeGreaterThan(50);
    const contracts = new Set(runsOf("renderer").map((one) => one.renderer_contract));
    expect([...contracts]).toEqual([expect.stringMatching(/^bundle:/)]);
  });

  it("has the model's vocabulary and ends in the manifest where a bundle told them", () => {
    const modelsOf = (name: string) => {
      const manifest = readFileSync(`${demos.get(name)!.samplesFile}.manifest.json`, "utf8");
      return (JSON.parse(manifest) as OutputManifest).models;
    };
    const config = JSON.parse(readFileSync(join(root, "fixtures/policy/config.json"), "utf8")) as Record<
      string,
      number
    >;
    expect(modelsOf("engine")).toEqual([]);
    expect(modelsOf("renderer")).toEqual(modelsOf("incremental"));
    expect(modelsOf("renderer")).toMatchObject([
      { vocabulary_size: config.vocab_size, eos_ids: expect.arrayContaining([config.eos_token_id]) },
    ]);
  });

  it("keeps at least full history's share of trainable tokens in incremental mode", () => {
    const [full, incremental] = [figuresOf(runsOf("renderer")), figuresOf(runsOf("incremental"))];
    print("full history", full);
    print("incremental", incremental);
    expect(incremental.trained / incremental.captured).toBeGreaterThanOrEqual(full.trained / full.captured);
    // Every turn but the first stands behind a junction: no call fell back to full history.
    for (const { spans } of runsOf("incremental").flatMap((one) => one.samples)) {
      const turns = new Set(spans.filter(({ kind }) => kind === "action").map(({ turn }) => turn));
      expect(spans.filter(({ kind }) => kind === "seam")).toHaveLength(turns.size - 1);
    }
  });

  it.each(["renderer", "incremental"])("trains each token behind the prefix that the engine saw (%s)", (name) => {
    const runs = runsOf(name);
    const compared = expectEachTrainedTokenIsTheEngines(runs, readEngineLog(demos.get(name)!.engineLog));
    expect(compared).toBe(figuresOf(runs).trained);
    expect(demos.get(name)!.fidelity.maxDifference).toBeLessThanOrEqual(1e-5);
  });
});

describe("a harness that re-serialises arguments and drops reasoning", () => {
  const materialized = async (name: string, flags: readonly string[]): Promise<RolloutRun> => {
    const out = join(dir, `drift-${name}`);
    mkdirSync(out);
    const script = join(root, "scripts/test/programs/drifting-policy.json");
    const engine = await startEngineProcess({
      seed: 1,
      logFile: join(out, "engine.ndjson"),
      policy: `script:${script}`,
    });
    try {
      const command = [process.execPath, join(root, "scripts/test/programs/rewriting-loop.mjs")];
      const own = ["--upstream", engine.url, "--model", "policy", "--out", join(out, "tito"), ...flags];
      const ran = await tito(["run", ...own, "--", ...command]);
      expect(ran, ran.stderr).toMatchObject({ exitCode: 0 });
    } finally {
      await engine.stop();
    }
    const samples = join(out, "samples.jsonl");
    expect(await tito(["materialize", out, "--out", samples])).toMatchObject({ exitCode: 0 });
    const [run, ...others] = readRuns(samples);
    expect(others).toEqual([]);
    return run!;
  };

  it("is one sample in incremental mode, where full history splits at every turn", async () => {
    const full = await materialized("full", await rendererFlags(dir, false));
    const incremental = await materialized("incremental", await rendererFlags(dir, true));
    print("full history", figuresOf([full]));
    print("incremental", figuresOf([incremental]));
    expect(full.samples).toHaveLength(5);
    expect(incremental.samples).toHaveLength(1);
    expect(incremental.coverage.trained_tokens).toBe(incremental.coverage.captured_tokens);
    expect(incremental.coverage.captured_tokens).toBe(full.coverage.captured_tokens);
  });
});
