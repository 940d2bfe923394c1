import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { verifyOutput } from "../../src/audit/verify-output.js";
import { explainToken } from "../../src/explain/explain-token.js";
import { findTrials } from "../../src/find/discover.js";
import { materialize } from "../../src/jobs/materialize.js";
import { loadPolicy } from "../../src/recipe/policy.js";
import type { RolloutRun } from "../../src/write/rollout-run.js";
import { temporaryDirectory } from "../temporary.js";
import type { Call } from "../trajectories.js";
import { harborResult, putFile, writeTrajectory } from "../written.js";

const calls: Call[] = [
  { prompt: [1], sampled: [10, 11] },
  { prompt: [1, 10, 11, 2], sampled: [12] },
];

async function runsOf(paths: string[], extra: Partial<Parameters<typeof materialize>[0]> = {}) {
  const out = join(temporaryDirectoryOnce, `${outputs++}.jsonl`);
  const report = await materialize({ paths, out, ...extra });
  expect((await verifyOutput(out)).problems).toEqual([]);
  const runs = readFileSync(out, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as RolloutRun);
  return { runs, warnings: report.manifest.warnings };
}
const temporaryDirectoryOnce = temporaryDirectory();
let outputs = 0;

describe("which trajectories make a run", () => {
  it("several of one trial directory are one run; a bare one is a run of its own", async () => {
    const root = temporaryDirectory();
    putFile(join(root, "trial-1", "reward.json"), 1);
    await writeTrajectory(join(root, "trial-1", "logs"), { id: "a", calls });
    await writeTrajectory(join(root, "trial-1", "logs"), { id: "b", calls });
    await writeTrajectory(join(root, "loose"), { id: "c", calls });
    const { runs } = await runsOf([root]);
    expect(runs.map((run) => [run.trajectory_ids, run.reward, run.samples.length])).toEqual([
      [["c"], null, 1],
      [["a", "b"], 1, 2],
    ]);
    expect(runs[1]!.coverage.trained_tokens).toBe(6);
    expect(runs[1]!.samples.map((sample) => sample.weight)).toEqual([0.5, 0.5]);
  });

  it("equal ids from the flags make a run across directories", async () => {
    const root = temporaryDirectory();
    await writeTrajectory(join(root, "x"), { id: "a", calls, runId: "r", trialId: "t", groupId: "g" });
    await writeTrajectory(join(root, "y"), { id: "b", calls, runId: "r", trialId: "t", groupId: "g" });
    const { runs } = await runsOf([root]);
    expect(runs.map((run) => [run.run_id, run.trial_id, run.group_id, run.trajectory_ids])).toEqual([
      ["r", "t", "g", ["a", "b"]],
    ]);
  });

  it("a newer attempt supersedes an older, which stays in the output with the reason", async () => {
    const root = temporaryDirectory();
    await writeTrajectory(root, { id: "a", calls, runId: "r", trialId: "t", attempt: 1 });
    await writeTrajectory(root, { id: "b", calls, runId: "r", trialId: "t", attempt: 3 });
    const { runs } = await runsOf([root], { rewards: put(root, "r.json", { t: 1 }) });
    expect(runs.map((run) => [run.attempt, run.excluded, run.weight])).toEqual([
      [1, "superseded_by_attempt_3", 0],
      [3, null, 1],
    ]);
    expect(runs[1]!.group).toMatchObject({ size: 1, flags: ["single_member"] });
  });

  it("the same trajectory found twice is read once, and told", async () => {
    const root = temporaryDirectory();
    await writeTrajectory(join(root, "x"), { id: "same", calls, runId: "r", trialId: "t" });
    await writeTrajectory(join(root, "y"), { id: "same", calls, runId: "r", trialId: "t" });
    const { runs, warnings } = await runsOf([root]);
    expect(runs).toHaveLength(1);
    expect(runs[0]!.coverage.captured_tokens).toBe(3);
    expect(warnings.join()).toMatch(/same was found twice/);
  });

  it("finds a trajectory at any depth, and does not take Harbor's own manifests or the job's result for anything", async () => {
    const root = temporaryDirectory();
    const trial = join(root, "job", "add__1");
    putFile(join(root, "job", "result.json"), { stats: {}, n_total_trials: 1 });
    putFile(join(trial, "result.json"), harborResult({ task: "add", name: "add__1", rewards: { reward: 1 } }));
    putFile(join(trial, "artifacts", "manifest.json"), { entries: [] });
    const dir = await writeTrajectory(join(trial, "agent", "deep", "er", "logs", "tito"), { id: "a", calls });
    const found = findTrials([root]);
    expect(found.map((each) => [each.dir, each.facts?.trial_name, each.trajectories])).toEqual([
      [trial, "add__1", [dir]],
    ]);
  });

  it("C9.72: a trial whose calls were never captured is a run that says so, not a missing line", async () => {
    const root = temporaryDirectory();
    putFile(join(root, "t", "reward.json"), { reward: 1 });
    const { runs } = await runsOf([root]);
    expect(runs[0]).toMatchObject({
      termination: "capture_incomplete",
      excluded: "capture_incomplete",
      samples: [],
      reward: 1,
      weight: 0,
    });
  });
});

const put = (root: string, name: string, content: unknown) => {
  putFile(join(root, name), content);
  return join(root, name);
};

describe("a trial that its runner and the recorder call differently", () => {
  it("is found by both names in every side file and in explain", async () => {
    const root = temporaryDirectory();
    for (const name of ["add__1", "add__2"]) {
      putFile(join(root, "j", name, "result.json"), harborResult({ task: "add", name, rewards: { reward: 1 } }));
      await writeTrajectory(join(root, "j", name, "agent"), {
        id: `t-${name}`,
        calls,
        trialId: `rec-${name}`,
        runId: `r-${name}`,
      });
    }
    for (const prefix of ["", "rec-"]) {
      const { runs, warnings } = await runsOf([join(root, "j")], {
        rewards: put(root, "r.json", { [`${prefix}add__1`]: { reward: 1, extra: 2 } }),
        exclusions: put(root, "e.json", { [`${prefix}add__2`]: "cheated" }),
      });
      expect(runs.map((run) => [run.trial_id, run.scores.extra ?? null, run.excluded])).toEqual([
        ["rec-add__1", 2, null],
        ["rec-add__2", null, "cheated"],
      ]);
      expect(warnings).toEqual([]);
      expect(explainToken({ paths: [join(root, "j")], run: `${prefix}add__1`, sample: 0, token: 1 })).toMatchObject({
        run_id: "r-add__1",
      });
    }
  });
});

describe("scores and verdicts from files", () => {
  it("a mapping file comes first; what it contradicts is told", async () => {
    const root = temporaryDirectory();
    putFile(join(root, "j", "t1", "reward.json"), { reward: 0, style: 0.5 });
    await writeTrajectory(join(root, "j", "t1"), { id: "a", calls });
    const rewards = put(root, "rewards.csv", "path,reward,group_id,extra\nt1,1,math,7\nnobody,1,x,1\n");
    const { runs, warnings } = await runsOf([join(root, "j")], { rewards });
    expect(runs[0]).toMatchObject({
      reward: 1,
      scores: { reward: 1, style: 0.5, extra: 7 },
      scores_source: "mapping file",
      group_id: "math",
    });
    expect(warnings.join("\n")).toMatch(/score reward: 1 \(mapping file\) and 0 \(reward.json\)/);
    expect(warnings.join("\n")).toMatch(/1 name names no run, first path=nobody/);
  });

  it("an exclusions file marks runs and keeps them out of the statistics", async () => {
    const root = temporaryDirectory();
    for (const [name, reward] of [
      ["t__1", 1],
      ["t__2", 0],
      ["t__3", 1],
    ] as const) {
      putFile(join(root, "j", name, "reward.txt"), String(reward));
      await writeTrajectory(join(root, "j", name), { id: name, calls });
    }
    const exclusions = put(root, "bad.jsonl", '{"path": "t__3", "reason": "patched the verifier"}\n');
    const { runs } = await runsOf([join(root, "j")], {
      exclusions,
      policy: loadPolicy(null, { credit: "grpo-no-std" }),
    });
    expect(runs.map((run) => [run.excluded, run.weight, run.samples[0]!.advantage])).toEqual([
      [null, 1, 0.5],
      [null, 1, -0.5],
      ["patched the verifier", 0, null],
    ]);
    expect(runs[0]!.group).toMatchObject({ size: 3, counted: 2, flags: ["lost_members"] });
  });

  it("turn rewards give a list with one advantage per action span, in every format", async () => {
    const root = temporaryDirectory();
    for (const [name, reward] of [
      ["t__1", 1],
      ["t__2", 0],
    ] as const) {
      putFile(join(root, "j", name, "reward.txt"), String(reward));
      await writeTrajectory(join(root, "j", name), { id: name, calls });
    }
    const turnRewards = put(root, "turns.csv", "trajectory_id,turn,reward\nt__1,0,0.5\nt__1,1,1\n");
    const policy = loadPolicy(null, { credit: "grpo-no-std" });
    const { runs } = await runsOf([join(root, "j")], { turnRewards, policy });
    expect(runs.map((run) => run.samples[0]!.advantage)).toEqual([null, -0.5]);
    expect(runs.map((run) => run.samples[0]!.advantage_per_action)).toEqual([[0, 0.5], []]);
    expect(runs.map((run) => run.turn_rewards)).toEqual([[0.5, 1], null]);
    for (const format of ["parquet", "msgpack"] as const) {
      const out = join(root, `turns.${format}`);
      await materialize({ paths: [join(root, "j")], out, turnRewards, policy });
      expect((await verifyOutput(out)).problems).toEqual([]);
    }
  });

  it("an unreadable reward is unknown and never zero", async () => {
    const root = temporaryDirectory();
    for (const [name, text] of [
      ["t1", "nan"],
      ["t2", ""],
      ["t3", "{"],
    ] as const) {
      putFile(join(root, "j", name, name === "t3" ? "reward.json" : "reward.txt"), text);
      await writeTrajectory(join(root, "j", name), { id: name, calls });
    }
    const { runs } = await runsOf([join(root, "j")]);
    expect(runs.map((run) => [run.reward, run.excluded, run.weight])).toEqual([
      [null, null, 0],
      [null, null, 0],
      [null, null, 0],
    ]);
  });
});

describe("how a rollout ended", () => {
  it.each([
    ["AgentTimeoutError", "timeout"],
    ["EnvironmentStartTimeoutError", "env_error"],
    ["AgentSetupTimeoutError", "env_error"],
    ["CancelledError", "env_error"],
    ["VerifierTimeoutError", "verifier_error"],
    ["RewardFileNotFoundError", "verifier_error"],
    ["NonZeroAgentExitCodeError", "agent_error"],
    ["SomethingElseError", "verifier_error"],
  ])("%s is %s", async (exception, termination) => {
    const root = temporaryDirectory();
    putFile(join(root, "j", "t__1", "result.json"), harborResult({ task: "t", name: "t__1", exception }));
    await writeTrajectory(join(root, "j", "t__1"), { id: "a", calls });
    const { runs } = await runsOf([root]);
    expect(runs[0]!.termination).toBe(termination);
  });

  it("C5.38: a last call refused for its length is context_overflow; a gap or lost tokens make the run incomplete", async () => {
    const root = temporaryDirectory();
    const uncaptured =
      (reason: string, lost_tokens: boolean) =>
      (writer: { writeJournal: (name: "uncaptured", record: never) => void }) =>
        writer.writeJournal("uncaptured", {
          call_id: "c9",
          reason,
          status: 400,
          detail: "",
          lost_tokens,
          at_ms: 1_800_000_000_000,
        } as never);
    await writeTrajectory(root, { id: "a", calls, after: uncaptured("context_overflow", false) });
    await writeTrajectory(root, { id: "b", calls, after: uncaptured("engine_without_ids", true) });
    await writeTrajectory(root, { id: "c", calls: [{ ...calls[0]!, finish: "length" }] });
    const { runs } = await runsOf([root]);
    expect(runs.map((run) => run.termination)).toEqual(["context_overflow", "capture_incomplete", "length"]);
    expect(runs.map((run) => run.excluded)).toEqual([null, "capture_incomplete", null]);
  });
});

describe("outputs", () => {
  it("a directory that holds something else is refused, and nothing in it is touched", async () => {
    const root = temporaryDirectory();
    await writeTrajectory(join(root, "in"), { id: "a", calls });
    putFile(join(root, "out", "precious.txt"), "x");
    await expect(materialize({ paths: [join(root, "in")], out: join(root, "out/") })).rejects.toMatchObject({
      code: "already_exists",
    });
    expect(readFileSync(join(root, "out", "precious.txt"), "utf8")).toBe("x");
    writeFileSync(join(root, "file.jsonl"), "old");
    await materialize({ paths: [join(root, "in")], out: join(root, "file.jsonl") });
    expect(readFileSync(join(root, "file.jsonl"), "utf8")).toMatch(/^\{"schema"/);
  });
});
