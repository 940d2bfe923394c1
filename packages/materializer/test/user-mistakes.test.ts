/** What a user gets wrong around a materialization: it stops with one clear line, or it is told, and nothing of the user's is lost. */
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Writable } from "node:stream";
import { beforeAll, describe, expect, it } from "vitest";
import { verifyOutput } from "../src/audit/verify-output.js";
import { explainToken } from "../src/explain/explain-token.js";
import { type MaterializeOptions, materialize } from "../src/jobs/materialize.js";
import { loadPolicy } from "../src/recipe/policy.js";
import { temporaryDirectory } from "./temporary.js";
import { putFile, writeTrajectory } from "./written.js";

const root = temporaryDirectory();
const job = join(root, "job");
const trial = join(job, "add__1");
let trajectory = "";
const file = (name: string, text: string) => {
  writeFileSync(join(root, name), text);
  return join(root, name);
};
const make = (given: Partial<MaterializeOptions> = {}) =>
  materialize({ paths: [job], out: join(root, "out.jsonl"), ...given });

beforeAll(async () => {
  for (const name of ["add__1", "add__2"]) {
    putFile(join(job, name, "reward.json"), { reward: name === "add__1" ? 1 : 0 });
    putFile(join(job, name, "verifier", "log.txt"), "ok");
    const calls = [
      { prompt: [1], sampled: [10, 11] },
      { prompt: [1, 10, 11, 2], sampled: [12] },
    ];
    const dir = await writeTrajectory(join(job, name), { id: `t-${name}`, calls });
    if (name === "add__1") trajectory = dir;
  }
});

describe("an output never takes the place of what it is made from", () => {
  const places: [string, () => string][] = [
    ["the reward file", () => join(trial, "reward.json")],
    ["a new result of the trial", () => join(trial, "result.json")],
    ["the verifier's output", () => join(trial, "verifier", "samples.jsonl")],
    ["artifacts that are not there yet", () => join(trial, "artifacts")],
    ["a segment", () => join(trajectory, "segments", "000001.seg")],
    ["a file in the trajectory", () => join(trajectory, "out.jsonl")],
  ];
  it.each(places)("%s", async (_name, place) => {
    const before = existsSync(place()) ? readFileSync(place()) : null;
    await expect(make({ out: place(), format: "jsonl" })).rejects.toMatchObject({ code: "usage" });
    expect(existsSync(place()) ? readFileSync(place()) : null).toEqual(before);
  });

  it("a side file, also through a link", async () => {
    const rewards = file("rewards.jsonl", '{"trial_id":"job/add__1","reward":0.5}\n');
    symlinkSync(root, join(root, "link"));
    for (const out of [rewards, join(root, "link", "rewards.jsonl")])
      await expect(make({ out, rewards })).rejects.toThrow(/is one of the inputs/);
    expect(readFileSync(rewards, "utf8")).toContain("0.5");
  });

  it("a device", async () => {
    await expect(make({ out: "/dev/null", format: "jsonl" })).rejects.toThrow(/not a regular file/);
    expect(statSync("/dev/null").isCharacterDevice()).toBe(true);
  });

  it("but beside the trials and in a trial's own directory it may lie", async () => {
    for (const out of [join(job, "samples.jsonl"), join(trial, "samples.jsonl")])
      expect((await make({ out })).manifest.counts.runs).toBe(2);
  });
});

describe("a directory of shards", () => {
  it("keeps files of the user, and starts again where the manifest or the notes are no JSON", async () => {
    const out = join(root, "shards/");
    await make({ out });
    for (const name of ["materialized.json", "materialized.partial.jsonl"]) {
      writeFileSync(join(out, name), "garbage\n{}\n");
      expect((await make({ out, resume: true })).manifest.counts.runs).toBe(2);
      expect((await verifyOutput(out)).problems).toEqual([]);
    }
    writeFileSync(join(out, "notes.tmp"), "mine");
    await expect(make({ out, resume: true })).rejects.toMatchObject({ code: "already_exists" });
    expect(readFileSync(join(out, "notes.tmp"), "utf8")).toBe("mine");
  });

  it("is not made where there is no place for it", async () => {
    file("plain", "");
    await expect(make({ out: join(root, "plain/") })).rejects.toMatchObject({ code: "already_exists" });
    await expect(make({ out: join(root, "plain", "x/") })).rejects.toMatchObject({ code: "cannot_write" });
    await expect(make({ out: join(root, "no", "such/") })).rejects.toMatchObject({ code: "cannot_write" });
  });

  it("removes what a killed run left under a temporary name", async () => {
    const out = join(root, "killed/");
    mkdirSync(out);
    writeFileSync(join(out, "shard-0001-of-0016.parquet.4711.tmp"), "half");
    await make({ out, resume: true });
    expect(readdirSync(out).filter((name) => name.endsWith(".tmp"))).toEqual([]);
  });
});

describe("what has no effect is told", () => {
  const cases: [string, () => Partial<MaterializeOptions>, RegExp][] = [
    [
      "a misspelled score",
      () => ({ policy: loadPolicy(null, { reward: "rewrd" }) }),
      /reward: rewrd is null for every run; scores are reward/,
    ],
    [
      "a misspelled fact",
      () => ({ policy: loadPolicy(null, { group: "run.taks" }) }),
      /credit.group: run.taks is null/,
    ],
    [
      "a rule over nothing",
      () => ({ policy: loadPolicy("exclude: {rules: [{reason: x, when: 'score(\"a-b\") > 0'}]}") }),
      /exclude.rules: x: scores.a-b is null/,
    ],
    [
      "a reward in words",
      () => ({ rewards: file("w.csv", "trial_id,reward\njob/add__1,good\n") }),
      /1 run has scores of which the rule "reward" makes no number, first job\/add__1: {"reward":"good"}/,
    ],
    [
      "a turn that is not there",
      () => ({ turnRewards: file("t.csv", "trial_id,turn,reward\njob/add__1,2,1\n") }),
      /a turn reward names turn 2; there are 2, counted from 0/,
    ],
    [
      "a run that is not there",
      () => ({ exclusions: file("e.csv", "run_id,reason\nadd__9,x\n") }),
      /e.csv: 1 name names no run, first run_id=add__9; the first run has run_id job\/add__1/,
    ],
  ];
  it.each(cases)("%s", async (_name, given, message) => {
    expect((await make(given())).manifest.warnings.join("\n")).toMatch(message);
  });

  it("and nothing is told when everything has an effect", async () => {
    const turnRewards = file("full.csv", "path,turn,reward\nadd__1,0,0.5\nadd__1,1,1\n");
    expect((await make({ turnRewards })).manifest.warnings).toEqual([]);
  });

  it("no reward at all, and turns that have none", async () => {
    const bare = join(root, "bare");
    await writeTrajectory(bare, {
      id: "t",
      calls: [
        { prompt: [1], sampled: [2] },
        { prompt: [1, 2, 3], sampled: [4] },
      ],
    });
    expect((await make({ paths: [bare] })).manifest.warnings.join()).toMatch(/no run has a reward: every weight is 0/);
    const turnRewards = file("one.csv", "trajectory_id,turn,reward\nt,0,1\n");
    expect((await make({ paths: [bare], turnRewards })).manifest.warnings.join()).toMatch(
      /1 of 2 turns have no turn reward/,
    );
  });
});

describe("checking and explaining afterwards", () => {
  it("finds side files from the same directory as the trials", async () => {
    const rewards = file("scores.csv", "trial_id,reward\njob/add__1,1\n");
    const out = join(root, "inputs.jsonl");
    await make({ out, rewards });
    expect((await verifyOutput(out, { inputs: job })).problems).toEqual([]);
    writeFileSync(rewards, "trial_id,reward\njob/add__1,0\n");
    expect((await verifyOutput(out, { inputs: job })).problems).toEqual(["input ../scores.csv was changed"]);
    const elsewhere = (await verifyOutput(out, { inputs: join(root, "bare") })).problems;
    expect(elsewhere).toHaveLength(1);
    expect(elsewhere[0]).toMatch(
      /none of the \d+ files of trials lies below .*: --inputs is the directory that holds the trials/,
    );
  });

  it("says when the whole run weighs nothing", async () => {
    const at = { paths: [job], run: "job/add__1", sample: 0, token: 1 };
    expect(explainToken(at)).toMatchObject({ loss_mask: 1, excluded: null, reward: 1 });
    const exclusions = file("verdicts.csv", "trial_id,reason\njob/add__1,cheated\n");
    expect(explainToken({ ...at, exclusions })).toMatchObject({ loss_mask: 1, excluded: "cheated" });
  });

  it("a standard output that breaks is an error of the command, not of the process", async () => {
    const stdout = new Writable({ write: (_chunk, _encoding, done) => done(new Error("write EPIPE")) });
    await expect(make({ out: "-", stdout })).rejects.toMatchObject({
      code: "io",
      message: "standard output: write EPIPE",
    });
  });
});
