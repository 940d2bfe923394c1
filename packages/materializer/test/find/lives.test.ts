/** One trial, one life (O.82), and results that are about another trial than the one beside them (O.83). */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { explainToken } from "../../src/explain/explain-token.js";
import { materialize } from "../../src/jobs/materialize.js";
import type { RolloutRun } from "../../src/write/rollout-run.js";
import { temporaryDirectory } from "../temporary.js";
import type { Call } from "../trajectories.js";
import { harborResult, putFile, type TrajectorySpec, writeTrajectory } from "../written.js";

const calls: Call[] = [{ prompt: [1], sampled: [10, 11] }];
const START = 1_800_000_000_000;
/** A run id as `tito run` makes one. */
const made = (digit: number) => `r-${String(digit).repeat(18)}`;

async function materialized(root: string, rewards?: unknown) {
  if (rewards !== undefined) putFile(join(root, "..", `${root.split("/").at(-1)}.json`), rewards);
  const out = join(temporaryDirectoryOnce, `${count++}.jsonl`);
  const report = await materialize({ paths: [root], out, rewards: rewards === undefined ? undefined : `${root}.json` });
  const lines = readFileSync(out, "utf8").trim().split("\n");
  const runs = lines.map((line) => JSON.parse(line) as RolloutRun);
  return { runs, warnings: report.manifest.warnings.join("\n"), exclusions: report.manifest.exclusions };
}
const temporaryDirectoryOnce = temporaryDirectory();
let count = 0;

/** [trajectories, excluded] of every run. */
const lives = (runs: readonly RolloutRun[]) =>
  Object.fromEntries(runs.map((run) => [run.trajectory_ids.join("+"), run.excluded]));

const second = { startMs: START + 60_000 };
const first = { startMs: START };
type Ids = Partial<TrajectorySpec>;

describe("two attempts of a trial", () => {
  const attempts: [string, Ids, Ids][] = [
    ["with run ids that were made", { runId: made(1) }, { runId: made(2) }],
    ["with run ids that a user gave", { runId: "alpha" }, { runId: "beta" }],
    ["with one run id", { runId: "same" }, { runId: "same" }],
    ["without run ids", {}, {}],
  ];
  for (const [what, one, two] of attempts) {
    it(`${what}: the newest attempt counts, in one directory or two, whenever each was recorded`, async () => {
      for (const dirs of [
        ["a", "b"],
        ["t", "t"],
      ] as const) {
        for (const times of [
          [first, second],
          [second, first],
        ] as const) {
          const root = temporaryDirectory();
          await writeTrajectory(join(root, dirs[0]), { id: "x", calls, trialId: "T", attempt: 1, ...one, ...times[0] });
          await writeTrajectory(join(root, dirs[1]), { id: "y", calls, trialId: "T", attempt: 2, ...two, ...times[1] });
          const { runs } = await materialized(root, { T: { reward: 1 } });
          expect(lives(runs)).toEqual({ x: "superseded_by_attempt_2", y: null });
          expect(runs.map((run) => run.weight).sort()).toEqual([0, 1]);
        }
      }
    });
  }

  it("of one trial directory count by their number without any trial id", async () => {
    const root = temporaryDirectory();
    putFile(join(root, "t", "reward.json"), { reward: 1 });
    await writeTrajectory(join(root, "t"), { id: "x", calls, runId: made(1), attempt: 2, ...first });
    await writeTrajectory(join(root, "t"), { id: "y", calls, runId: made(2), attempt: 1, ...second });
    expect(lives((await materialized(root)).runs)).toEqual({ x: null, y: "superseded_by_attempt_2" });
  });
});

describe("a recorder that was started again in the same trial directory", () => {
  async function trial(
    specs: Ids[],
    result: unknown = harborResult({ task: "t", name: "t__1", rewards: { reward: 1 } }),
  ) {
    const root = temporaryDirectory();
    putFile(join(root, "t__1", "result.json"), result);
    for (const [i, spec] of specs.entries())
      await writeTrajectory(join(root, "t__1", "agent"), { id: `x${i}`, calls, ...spec });
    return materialized(root);
  }

  it.each<[string, Ids[]]>([
    ["made run ids", [{ runId: made(1) }, { runId: made(2) }]],
    ["no run ids", [{}, {}]],
    ["a made one and none", [{ runId: made(1) }, {}]],
    ["given run ids", [{ runId: "alpha" }, { runId: "beta" }]],
    [
      "given trial ids",
      [
        { runId: made(1), trialId: "T-1" },
        { runId: made(2), trialId: "T-2" },
      ],
    ],
    ["a first life that was killed", [{ runId: made(1), unsealed: true }, { runId: made(2) }]],
  ])("with %s: the later life counts, and is told", async (_what, [one, two]) => {
    const { runs, warnings, exclusions } = await trial([
      { ...one, ...first },
      { ...two, ...second },
    ]);
    expect(lives(runs)).toEqual({ x0: "superseded_by_later_run", x1: null });
    expect(exclusions).toEqual({ superseded_by_later_run: 1 });
    expect(warnings).toMatch(/the trial \S+ was run again: \S+ counts, \S+ was recorded before it and does not/);
    expect(runs.find((run) => run.excluded === null)!.group).toMatchObject({ size: 1, counted: 1 });
  });

  it("with equal ids from its flags: one run, as the ids say, and a warning", async () => {
    const ids = { runId: "r", trialId: "T" };
    const { runs, warnings } = await trial([
      { ...ids, ...first },
      { ...ids, ...second },
    ]);
    expect(lives(runs)).toEqual({ "x0+x1": null });
    expect(warnings).toMatch(
      /2 trajectories train as one run \(x0, x1\): they have the same ids and were recorded one after/,
    );
  });

  it("at the same time: several agents of one trial are one run, which is told", async () => {
    const { runs, warnings } = await trial([
      { runId: made(1), ...first },
      { runId: made(2), ...first },
    ]);
    expect(lives(runs)).toEqual({ "x0+x1": null });
    expect(warnings).toMatch(/2 trajectories train as one run \(x0, x1\): they lie in one trial directory/);
  });

  it("once a step of a multi-step trial: all steps are one run", async () => {
    const result = {
      ...harborResult({ task: "t", name: "t__1", rewards: { reward: 1 } }),
      step_results: [{ step_name: "plan" }, { step_name: "build" }],
    };
    const steps = [
      { runId: made(1), ...first },
      { runId: made(2), ...second },
    ];
    const whole = await trial(steps, result);
    expect([lives(whole.runs), whole.warnings]).toEqual([{ "x0+x1": null }, ""]);
    const again = await trial([...steps, { runId: made(3), startMs: START + 120_000 }], result);
    expect(again.warnings).toMatch(/3 trajectories train as one run .* although the trial had 2 steps/);
  });
});

describe("an agent that was started twice inside one recording", () => {
  const tools = [{ name: "bash", description: "", parameters: "{}" }];
  const start = (prompt: number[], sampled: number[]): Call => ({ prompt, sampled, tools });

  it("is told: both conversations train as one rollout", async () => {
    const root = temporaryDirectory();
    const again = [start([1, 2], [10]), start([1, 2, 10, 3], [11]), start([1, 2], [12]), start([1, 2, 12, 3], [13])];
    await writeTrajectory(root, { id: "twice", calls: again });
    const { warnings } = await materialized(root, [{ trajectory_id: "twice", reward: 1 }]);
    expect(warnings).toMatch(/trajectory twice begins 2 conversations in the main lane \(again at turn 2\)/);
  });

  it.each<[string, Call[]]>([
    [
      "a compaction",
      [start([1, 2], [10]), { ...start([1, 2, 10, 5], [20]), lane: "compaction" }, start([1, 20], [12])],
    ],
    ["another task", [start([1, 2, 3], [10]), start([1, 5, 6], [11])]],
    ["a sub-agent", [start([1, 2], [10]), { ...start([7], [20]), lane: "sub:x" }, start([1, 2, 10, 3], [12])]],
    ["a side call without tools", [start([1, 2], [10]), { prompt: [8], sampled: [9] }, start([1, 2, 10, 3], [12])]],
    ["a first answer that did not arrive", [{ ...start([1, 2], [10]), delivery: "failed" }, start([1, 2], [11])]],
  ])("is not told of %s", async (what, spec) => {
    const root = temporaryDirectory();
    await writeTrajectory(root, { id: what.replaceAll(" ", "-"), calls: spec });
    expect((await materialized(root)).warnings).not.toMatch(/conversations/);
  });
});

describe("two trials of which one has what belongs to the other", () => {
  /** Two trials in one job, with rewards 0 and 1; `ids` are what the trajectory in the directory of each recorded. */
  async function job(ids: [Ids, Ids], results: "harbor" | "plain" | "exchanged" = "harbor", rewards?: unknown) {
    const root = join(temporaryDirectory(), "j");
    const names = ["add__a", "add__b"] as const;
    for (const [i, name] of names.entries()) {
      const said = results === "exchanged" ? names[1 - i]! : name;
      const reward = results === "exchanged" ? 1 - i : i;
      if (results === "plain") putFile(join(root, name, "reward.json"), { reward });
      else putFile(join(root, name, "result.json"), harborResult({ task: "add", name: said, rewards: { reward } }));
      await writeTrajectory(join(root, name, "agent"), { id: `in-${name}`, calls, ...ids[i] });
    }
    const done = await materialized(root, rewards);
    return { ...done, root, rewardOf: new Map(done.runs.map((run) => [run.trajectory_ids[0], run.reward])) };
  }

  it.each<[string, [Ids, Ids], "harbor" | "plain"]>([
    ["trial ids", [{ trialId: "add__b" }, { trialId: "add__a" }], "harbor"],
    ["run ids", [{ runId: "add__b" }, { runId: "add__a" }], "harbor"],
    ["trajectory ids", [{ id: "add__b" }, { id: "add__a" }], "harbor"],
    ["trial ids, beside plain rewards", [{ trialId: "add__b" }, { trialId: "add__a" }], "plain"],
    [
      "trial ids with the job's name, beside plain rewards",
      [{ trialId: "j/add__b" }, { trialId: "j/add__a" }],
      "plain",
    ],
  ])(
    "exchanged trajectories that recorded %s: each gets the reward of the trial that it names, and a conflict",
    async (_what, ids, results) => {
      const { runs, warnings, rewardOf } = await job(ids, results);
      expect(runs).toHaveLength(2);
      expect(rewardOf.get(ids[0].id ?? "in-add__a")).toBe(1);
      expect(rewardOf.get(ids[1].id ?? "in-add__b")).toBe(0);
      for (const run of runs) {
        expect(run.conflicts.join()).toMatch(/add__[ab] is the name of another trial than that in which trajectory/);
        expect(warnings).toContain(run.conflicts[0]!);
      }
    },
  );

  it("exchanged results: the result that names the trial is used, and a conflict", async () => {
    const { runs, rewardOf } = await job([{ trialId: "add__a" }, { trialId: "add__b" }], "exchanged");
    expect([rewardOf.get("in-add__a"), rewardOf.get("in-add__b")]).toEqual([0, 1]);
    for (const run of runs) expect(run.conflicts.join()).toMatch(/is that of add__[ab], which is another directory/);
    const unnamed = await job([{}, {}], "exchanged");
    for (const run of unnamed.runs) expect(run.conflicts.join()).toMatch(/which is another directory/);
  });

  it("a mapping file settles it, and its own contradiction is a conflict", async () => {
    const rows = [
      { trajectory_id: "in-add__a", trial_id: "add__a", reward: 0.25 },
      { trajectory_id: "in-add__b", trial_id: "add__b", reward: 0.75 },
    ];
    const settled = await job([{ trialId: "add__b" }, { trialId: "add__a" }], "harbor", rows);
    expect([settled.rewardOf.get("in-add__a"), settled.rewardOf.get("in-add__b")]).toEqual([0.25, 0.75]);
    expect(settled.runs.map((run) => run.trial_id)).toEqual(["add__a", "add__b"]);
    for (const run of settled.runs) expect(run.conflicts.join()).toMatch(/mapping file\) and add__[ab] \(recorded/);
    const against = await job([{}, {}], "harbor", [
      { trajectory_id: "in-add__a", trial_id: "add__b" },
      { trajectory_id: "in-add__b", trial_id: "add__a" },
    ]);
    expect([against.rewardOf.get("in-add__a"), against.rewardOf.get("in-add__b")]).toEqual([1, 0]);
    for (const run of against.runs)
      expect(run.conflicts.join()).toMatch(/trial_id \(mapping file\): add__[ab] is the name/);
    const byPath = await job([{}, {}], "harbor", [{ path: "add__a", trial_id: "add__b" }]);
    expect(byPath.warnings).toMatch(/trial_id: add__b is also the name of j\/add__b/);
  });

  it("one trajectory in the wrong place: it joins its trial, and the other one has none", async () => {
    const { runs } = await job([
      { trialId: "add__b", runId: made(1) },
      { trialId: "add__b", runId: made(2), ...second },
    ]);
    expect(lives(runs)).toEqual({
      "": "capture_incomplete",
      "in-add__a": "superseded_by_later_run",
      "in-add__b": null,
    });
  });

  it("is not seen where ids only look alike: own names, other jobs, several trials of one name", async () => {
    const { runs, root } = await job([{ trialId: "add__a", runId: "j/add__a" }, { trialId: "add__b" }]);
    expect(runs.flatMap((run) => run.conflicts)).toEqual([]);
    expect(explainToken({ paths: [root], run: "add__a", sample: 0, token: 1 }).reward).toBe(0);
    const jobs = temporaryDirectory();
    for (const name of ["j1", "j2"]) {
      putFile(join(jobs, name, "0", "reward.json"), { reward: 1 });
      putFile(join(jobs, name, "1", "reward.json"), { reward: 0 });
      await writeTrajectory(join(jobs, name, "0"), { id: `${name}-0`, calls, trialId: "0", runId: name });
    }
    expect((await materialized(jobs)).runs.flatMap((run) => run.conflicts)).toEqual([]);
  });
});
