import { createHash } from "node:crypto";
import { cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { beforeAll, describe, expect, it } from "vitest";
import { materialize, type Report } from "../../src/jobs/materialize.js";
import { loadPolicy } from "../../src/recipe/policy.js";
import { type RolloutRun, rolloutRunSchema } from "../../src/write/rollout-run.js";
import { temporaryDirectory } from "../temporary.js";
import { harborResult, putFile, writeTrajectory } from "../written.js";

const root = temporaryDirectory();
const job = join(root, "job");

/** Two tasks of a Harbor job, with a crashed environment, a sub-agent and an aborted call among the trials. */
beforeAll(async () => {
  const two = [
    { prompt: [1, 2, 3], sampled: [10, 11] },
    { prompt: [1, 2, 3, 10, 11, 4], sampled: [12, 13, 14] },
  ];
  const trials = [
    { name: "add__aa", rewards: { reward: 1 }, calls: two },
    { name: "add__bb", rewards: { reward: 0 }, calls: [...two, { prompt: [1, 2, 9], sampled: [15] }] },
    { name: "add__cc", exception: "EnvironmentStartTimeoutError", calls: [] },
    {
      name: "sub__dd",
      rewards: { reward: 0.5, hack: 1 },
      calls: [{ prompt: [7], sampled: [8], lane: "sub:x" as const }],
    },
  ];
  for (const trial of trials) {
    const dir = join(job, trial.name);
    putFile(join(dir, "result.json"), harborResult({ task: trial.name.slice(0, 3), ...trial }));
    putFile(join(dir, "verifier", "test-stdout.txt"), "ok");
    if (trial.calls.length > 0)
      await writeTrajectory(join(dir, "agent", "tito"), { id: `t-${trial.name}`, calls: trial.calls });
  }
  putFile(join(job, "result.json"), { n_total_trials: 4, stats: {} });
});

function lines(path: string): RolloutRun[] {
  return readFileSync(path, "utf8")
    .trim()
    .split("\n")
    .map((line) => rolloutRunSchema.parse(JSON.parse(line)));
}

async function run(
  name: string,
  extra: Partial<Parameters<typeof materialize>[0]> = {},
): Promise<{ report: Report; path: string }> {
  const path = join(root, name);
  return { report: await materialize({ paths: [job], out: path, ...extra }), path };
}

describe("materialize", () => {
  it("turns a Harbor job into one run a line, with rewards, groups and coverage", async () => {
    const { report, path } = await run("out.jsonl");
    const runs = lines(path);
    expect(runs.map((each) => each.trial_id)).toEqual(["add__aa", "add__bb", "add__cc", "sub__dd"]);
    expect(runs.map((each) => each.group_id)).toEqual(["job/add", "job/add", "job/add", "job/sub"]);
    expect(runs.map((each) => each.reward)).toEqual([1, 0, null, 0.5]);
    expect(runs.map((each) => each.termination)).toEqual(["completed", "completed", "env_error", "completed"]);
    expect(runs[0]!.samples[0]!.tokens).toEqual([1, 2, 3, 10, 11, 4, 12, 13, 14]);
    expect(runs[0]!.samples[0]!.loss_mask).toEqual([0, 0, 0, 1, 1, 0, 1, 1, 1]);
    expect(runs[0]!.samples[0]!.weight).toBe(1);
    expect(runs[0]!.samples[0]!.advantage).toBeCloseTo(0.5 / (Math.SQRT1_2 + 1e-6), 12);
    expect(runs[0]!.group).toMatchObject({ size: 3, counted: 2, flags: ["lost_members"] });
    expect(runs[1]!.samples.map((sample) => sample.weight)).toEqual([5 / 6, 1 / 6]);
    expect(report.manifest.coverage).toEqual({
      captured_tokens: 12,
      eligible_tokens: 12,
      trained_tokens: 12,
      masked: {},
    });
    expect(report.manifest.counts).toMatchObject({ trials: 4, runs: 4, samples: 4, turns: 6 });
  });

  it("C5.39: a crashed environment is a discarded episode and not a zero", async () => {
    const { path } = await run("c539.jsonl");
    const crashed = lines(path)[2]!;
    expect(crashed).toMatchObject({ excluded: "env_error", reward: null, samples: [], weight: 0 });
  });

  it("keeps what the verifier said apart from reward and credit, and hashes its evidence", async () => {
    const policy = loadPolicy(`
reward: "reward - 0.25 * coalesce(hack, 0)"
exclude: { rules: [{ reason: reward_hacking, when: "hack > 0 and exists('verifier/*.txt')" }] }
`);
    const { path, report } = await run("hack.jsonl", { policy });
    const hacked = lines(path)[3]!;
    expect(hacked).toMatchObject({
      scores: { reward: 0.5, hack: 1 },
      reward: 0.25,
      excluded: "reward_hacking",
      weight: 0,
    });
    expect(hacked.samples[0]!.advantage).toBeNull();
    const sha256 = createHash("sha256").update("ok").digest("hex");
    expect(hacked.evidence).toContainEqual({ path: "verifier/test-stdout.txt", bytes: 2, sha256 });
    expect(report.manifest.exclusions).toEqual({ env_error: 1, reward_hacking: 1 });
  });

  it("writes the same bytes again, and streams them to standard output", async () => {
    const { path } = await run("again.jsonl");
    const stdout = new PassThrough();
    const streamed = stdout.toArray();
    await materialize({ paths: [job], out: "-", stdout });
    stdout.end();
    expect(Buffer.concat(await streamed).equals(readFileSync(path))).toBe(true);
  });

  it("takes the trials in any order and from any depth", async () => {
    const { path } = await run("order.jsonl");
    const dirs = readdirSync(job)
      .filter((name) => name.includes("__"))
      .reverse();
    await materialize({ paths: dirs.map((name) => join(job, name)), out: join(root, "reversed.jsonl") });
    expect(readFileSync(join(root, "reversed.jsonl"), "utf8")).toBe(readFileSync(path, "utf8"));
  });

  it("resumes a directory of shards: unchanged groups keep their files, changed ones are written again", async () => {
    const out = join(root, "shards/");
    const rewards = join(root, "rewards.csv");
    const policy = loadPolicy("output: {shards: 64}");
    const first = await materialize({ paths: [job], out, format: "jsonl", policy });
    expect(first.manifest.outputs).toHaveLength(2);
    const again = await materialize({ paths: [job], out, format: "jsonl", policy, resume: true });
    expect(again.kept).toHaveLength(2);
    writeFileSync(rewards, "trial_id,reward\nsub__dd,0.75\n");
    const changed = await materialize({ paths: [job], out, format: "jsonl", policy, resume: true, rewards });
    expect(changed.kept).toHaveLength(1);
    expect(changed.runs.find((each) => each.trial_id === "sub__dd")!.reward).toBe(0.75);
    expect(readdirSync(out).filter((name) => name.startsWith("shard-"))).toHaveLength(2);
  });

  it("tells what it cannot read, keeps the trial, and writes the same bytes wherever the job lies", async () => {
    const outputs: string[] = [];
    for (const place of ["here", "somewhere/else"]) {
      const copy = join(root, place, "job");
      cpSync(job, copy, { recursive: true });
      writeFileSync(join(copy, "add__aa", "result.json"), "{broken");
      writeFileSync(join(copy, "add__bb", "agent", "tito", "t-add__bb", "manifest.json"), "not JSON");
      putFile(join(copy, "result.json"), "{broken too");
      const out = join(root, "damaged.jsonl");
      const { manifest } = await materialize({ paths: [copy], out });
      expect(manifest.warnings).toEqual([
        "run job/add__bb: capture incomplete: unreadable in manifest.json: manifest.json: not JSON",
        "run job/add__aa: result.json is not JSON",
      ]);
      expect(manifest.counts).toMatchObject({ runs: 4, trials: 4 });
      outputs.push(readFileSync(out, "utf8"));
      const [aa, bb] = lines(out);
      expect(aa).toMatchObject({ run_id: "job/add__aa", group_id: "job/add", reward: null, excluded: null });
      expect(bb).toMatchObject({ termination: "capture_incomplete", excluded: "capture_incomplete", weight: 0 });
      expect(bb!.samples[0]!.tokens).toEqual([1, 2, 3, 10, 11, 4, 12, 13, 14]);
    }
    expect(outputs[1]).toBe(outputs[0]);
  });

  it("leaves nothing behind when it fails", async () => {
    await expect(materialize({ paths: [join(root, "nothing")], out: join(root, "x.jsonl") })).rejects.toMatchObject({
      code: "not_found",
    });
    expect(existsSync(join(root, "x.jsonl"))).toBe(false);
    await expect(materialize({ paths: [job], out: join(root, "x.txt") })).rejects.toMatchObject({ code: "usage" });
  });
});

it("a turn of an answer without a token trains nothing and costs its run nothing (O.103)", async () => {
  const dir = temporaryDirectory();
  const trial = join(dir, "job", "add__aa");
  putFile(join(trial, "result.json"), harborResult({ name: "add__aa", task: "add", rewards: { reward: 1 } }));
  const calls = [
    { prompt: [1, 2, 3], sampled: [10, 11] },
    { prompt: [1, 2, 3, 10, 11, 4], sampled: [], logprobs: [], versions: [] },
    { prompt: [1, 2, 3, 10, 11, 4, 5], sampled: [12, 13, 14] },
  ];
  await writeTrajectory(join(trial, "agent", "tito"), { id: "t-empty", calls });
  const out = join(dir, "out.jsonl");
  await materialize({ paths: [join(dir, "job")], out });
  const [made] = lines(out);
  expect(made).toMatchObject({ excluded: null, termination: "completed", turns: 3 });
  expect(made!.coverage).toMatchObject({ captured_tokens: 5, trained_tokens: 5 });
  expect(made!.samples.flatMap((sample) => sample.loss_mask).filter((bit) => bit === 1)).toHaveLength(5);
});
