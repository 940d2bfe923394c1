import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { parseFlags, resumeCommand } from "../../rl/flags.js";
import type { HeldOut, IterationRow } from "../../rl/loop/iteration-row.js";
import type { LoopOptions } from "../../rl/loop/options.js";
import { CannotResume, RunState } from "../../rl/loop/run-state.js";
import { drawCurves } from "../../rl/report/curves.js";
import { interval95 } from "../../rl/report/interval.js";
import { poolArm } from "../../rl/report/pooled.js";
import { formatTable } from "../../rl/report/table.js";

const dir = mkdtempSync(join(tmpdir(), "tito-rl-report-"));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const row = (iteration: number, changes: Partial<IterationRow> = {}): IterationRow => ({
  iteration,
  rollouts: 64,
  solved: 32,
  habits: { calc: 20, think: 20, guess: 24 },
  sampledBy: [`step-${iteration}`],
  tokensSampled: 1000,
  tokensTrained: 1000,
  tokensStale: 0,
  tokensNeverSampled: 0,
  recordedOffMax: 1e-5,
  recordedOffMean: 1e-7,
  ratioOffMax: 1e-5,
  clippedTokens: 0,
  meanLogprob: -0.1,
  loss: 0,
  gradientNorm: 0.2,
  seconds: 7,
  ...changes,
});
const heldOut = (solved: number): HeldOut => ({ rollouts: 128, solved, habits: { calc: 100, think: 20, guess: 8 } });

describe("the 95 % interval of a share", () => {
  it.each([
    [0, 10, 0, 0.2775],
    [5, 10, 0.2366, 0.7634],
    [10, 10, 0.7225, 1],
    [112, 128, 0.8067, 0.9217],
  ])("of %d of %d is Wilson's", (solved, rollouts, low, high) => {
    const interval = interval95(solved, rollouts);
    expect(interval.low).toBeCloseTo(low, 3);
    expect(interval.high).toBeCloseTo(high, 3);
  });
});

describe("an arm's row", () => {
  const arm = poolArm([
    {
      arm: "transcript",
      seed: 1,
      rows: [row(0), row(1, { tokensNeverSampled: 580 })],
      heldOut: new Map([
        [0, heldOut(50)],
        [2, heldOut(60)],
      ]),
    },
    { arm: "transcript", seed: 2, rows: [row(0, { solved: 16 })], heldOut: new Map([[0, heldOut(52)]]) },
  ]);

  it("pools its seeds: solved and rollouts add up, at each step and for each set of weights", () => {
    expect(arm.curve.map(({ solved, rollouts }) => [solved, rollouts])).toEqual([
      [48, 128],
      [32, 64],
    ]);
    expect([...arm.heldOut].map(([version, { solved, rollouts }]) => [version, solved, rollouts])).toEqual([
      [0, 102, 256],
      [2, 60, 128],
    ]);
  });

  it("shows counts, intervals and what its trainer cannot see, as text and as Markdown", () => {
    const table = formatTable([arm]);
    for (const cell of ["40 % (102/256)", "47 % (60/128)", "580 (19.3 %)", "78/16/6 %"]) expect(table).toContain(cell);
    const markdown = formatTable([arm], { markdown: true }).split("\n");
    expect(new Set(markdown.map((line) => line.split(/(?<!\\)\|/).length)).size).toBe(1);
  });

  it("is drawn with a point a step and a mark for each set of weights", () => {
    const svg = drawCurves([arm], "8 × 8 <rollouts>");
    expect(svg.match(/<circle /g)).toHaveLength(2);
    expect(svg.match(/<polyline points="([^"]*)"/)![1]!.split(" ")).toHaveLength(2);
    expect(svg).toContain("8 × 8 &lt;rollouts>");
    expect(svg).not.toMatch(/NaN|undefined|fill="#1f2328" [^>]*fill=/);
  });
});

describe("the command line", () => {
  it("has the defaults of its help", () => {
    const parsed = parseFlags([]);
    expect(parsed).toMatchObject({
      flags: {
        arms: ["tito", "transcript", "careful"],
        seeds: [1],
        loop: { iterations: 10, stale: 0, maxVersionAge: 0 },
      },
    });
    expect(parseFlags(["--stale", "1"])).toMatchObject({ flags: { loop: { stale: 1, maxVersionAge: 1 } } });
    expect(parseFlags(["--help"])).toEqual({ kind: "help" });
  });

  it("of a resumed run has the flags that it was started with", () => {
    const again = "npm run demo:rl -- --seed 1,2 --stale 1 --resume --out /tmp/run";
    for (const args of [
      ["--seed", "1,2", "--out", "here", "--stale", "1"],
      ["--out=x", "--seed", "1,2", "--resume", "--stale", "1"],
    ])
      expect(resumeCommand(args, "/tmp/run")).toBe(again);
  });

  it.each([
    [["--iterations", "0"], /--iterations is "0"/],
    [["--seed", "1,x"], /--seed is "x"/],
    [["--seed", "1,1"], /--seed names something twice/],
    [["--arms", "tito,other"], /--arms: "other" is none of/],
    [["--lr=-1"], /--lr is "-1"/],
    [["--trainer", "torch", "--arms", "tito,transcript"], /--trainer torch/],
    [["--tasks", "20", "--rollouts", "20"], /--tasks × --rollouts/],
    [["--resume"], /--resume needs --out/],
    [["--what"], /--what/],
  ])("refuses %j by the flag's name", (args, problem) => {
    expect(parseFlags(args)).toMatchObject({ kind: "usage", problem: expect.stringMatching(problem) });
  });
});

describe("a run on disk", () => {
  const options: LoopOptions = {
    ...{ seed: 1, iterations: 3, tasks: 2, rolloutsPerTask: 2, learningRate: 1e-3, clip: 0.2, stale: 0 },
    ...{ maxVersionAge: 0, harness: "both", trainer: "ours", heldOut: 0 },
  };

  it("is not taken for a new one, and only resumed with the options that it was started with", () => {
    const run = join(dir, "run");
    RunState.open(run, options, false).addRow(row(0));
    expect(() => RunState.open(run, options, false)).toThrow(/--resume, or name another --out/);
    expect(() => RunState.open(run, { ...options, seed: 2, clip: 0.3 }, true)).toThrow(
      /another run: --seed 1 \(now 2\), --clip 0.2 \(now 0.3\)/,
    );
    expect(() => RunState.open(run, options, true)).toThrow(/step-0.*cannot be resumed/);
  });

  it("whose records cannot be read says so", () => {
    const run = join(dir, "torn");
    const state = RunState.open(run, options, false);
    writeFileSync(join(run, "iterations", "0.json"), "{");
    expect(() => state.rows()).toThrow(CannotResume);
  });
});
