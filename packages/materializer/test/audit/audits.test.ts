/** The four audits: each answers its question, and each fails when what it guards is broken. */
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { verifyOutput } from "../../src/audit/verify-output.js";
import { explainToken } from "../../src/explain/explain-token.js";
import { explainTurn } from "../../src/explain/explain-turn.js";
import { renderReport, renderTokenExplanation, renderTurnExplanation } from "../../src/explain/report.js";
import { materialize } from "../../src/jobs/materialize.js";
import { readEvidence } from "../../src/read/read.js";
import { temporaryDirectory } from "../temporary.js";
import { putFile, writeTrajectory } from "../written.js";

const root = temporaryDirectory();
const job = join(root, "job");
const calls = [
  { prompt: [1, 2], sampled: [10, 11, 12] },
  { prompt: [1, 2, 10, 11, 12, 3], sampled: [13] },
  { prompt: [1, 2, 10, 11, 77, 3], sampled: [14] },
];
const decode = (ids: Int32Array) => [...ids].map((id) => `<${id}>`).join("");

async function trial(name: string, reward: number, content = calls): Promise<string> {
  putFile(join(job, name, "reward.json"), { reward });
  return writeTrajectory(join(job, name), { id: `t-${name}`, calls: content });
}

beforeAll(async () => {
  await trial("a__1", 1);
  await trial("a__2", 0);
});

describe("audit 1: which call produced this token, and what was its exact prefix?", () => {
  it("names call, turn, file and offset, and recomputes the digest of the prompt", () => {
    const one = explainToken({ paths: [job], run: "job/a__1", sample: 0, token: 6, decode });
    expect(one).toMatchObject({
      id: 13,
      text: "<13>",
      call_id: "call-1",
      turn: 1,
      loss_mask: 1,
      reason: "trained",
      sampled_index: 0,
    });
    expect(one.file).toMatch(/^segments\/0+1\.seg$/);
    expect(one.prefix).toMatchObject({ tokens: 6, equal: true });
    expect(one.prefix.recomputed_sha256).toBe(one.prefix.recorded_sha256);
    expect(renderTokenExplanation(one)).toMatch(/recomputed sha256 [0-9a-f]{64} {3}equal/);
  });

  it("finds a run under ids that only the mapping file knows", () => {
    const rewards = join(root, "mapping.csv");
    putFile(rewards, "path,run_id,trial_id,reward\na__1,night-7,n7-1,0.5\n");
    const at = { paths: [job], sample: 0, token: 6 };
    expect(() => explainToken({ ...at, run: "night-7" })).toThrow(/no run is called night-7/);
    for (const run of ["night-7", "n7-1"])
      expect(explainToken({ ...at, run, rewards })).toMatchObject({ run_id: "night-7", trial_id: "n7-1", id: 13 });
  });

  it("says who owns a shared token, and what brought a token that was not sampled", () => {
    expect(explainToken({ paths: [job], run: "job/a__1", sample: 1, token: 2 })).toMatchObject({
      reason: "shared_prefix",
      owner: 0,
      loss_mask: 0,
    });
    expect(explainToken({ paths: [job], run: "job/a__1", sample: 0, token: 5 })).toMatchObject({
      kind: "context",
      turn: 1,
      sampled_index: null,
      logprob: null,
    });
  });

  it("fails when the recorded prompt is not the one that can be rebuilt: the turn is damage and trains nowhere", async () => {
    const wrong = [calls[0]!, { ...calls[1]!, prompt: [1, 2, 10, 11, 12, 3] }];
    const dir = await writeTrajectory(join(root, "wrong"), { id: "t-wrong", calls: wrong, sha256Of: { 1: [9, 9, 9] } });
    expect(explainTurn({ path: dir, turn: 1 })).toMatchObject({
      damage: expect.stringMatching(/another digest/),
      verdicts: [{ reason: "capture_damage" }],
    });
    expect(() => explainToken({ paths: [dir], run: "t-wrong", sample: 0, token: 6 })).toThrow(/has 5 tokens/);
    const { manifest } = await materialize({ paths: [dir], out: join(root, "wrong.jsonl") });
    expect(manifest.coverage.masked).toEqual({ capture_damage: 1 });
  });

  it("explains a drift: the first differing token with both sides, and what it cost", () => {
    const one = explainTurn({ path: join(job, "a__1", "t-a__1"), turn: 2, decode, context: 2 });
    expect(one).toMatchObject({ decision: "new_segment", match_tokens: 4 });
    expect(one.difference).toEqual({
      at: 4,
      expected: { before: [10, 11], from: [12, 3], before_text: "<10><11>", from_text: "<12><3>" },
      actual: { before: [10, 11], from: [77, 3], before_text: "<10><11>", from_text: "<77><3>" },
    });
    expect(renderTurnExplanation(one)).toMatch(/first difference at token 4/);
  });

  it("says why a prompt was rendered in full although incremental mode was on", () => {
    const one = explainTurn({ path: join(job, "a__1", "t-a__1"), turn: 2 });
    expect(one.fallback).toBeNull();
    expect(renderTurnExplanation(one)).not.toMatch(/rendered in full/);
    const fallback = { reason: "content_changed", detail: "message 3" };
    expect(renderTurnExplanation({ ...one, fallback })).toMatch(/rendered in full .*: content_changed, message 3/);
  });

  it("says what there is when asked for something that is not there", () => {
    expect(() => explainToken({ paths: [job], run: "x", sample: 0, token: 0 })).toThrow(
      /no run is called x; there is job\/a__1, job\/a__2/,
    );
    expect(() => explainToken({ paths: [job], run: "job/a__1", sample: 9, token: 0 })).toThrow(/has 2 samples/);
    expect(() => explainTurn({ path: join(job, "a__1", "t-a__1"), turn: 3 })).toThrow(/has 3 turns/);
  });
});

describe("audit 2: which group and policy version produced this rollout, what evidence remains?", () => {
  it("holds ids, versions and digests, and fails when an input or a piece of evidence is gone or changed", async () => {
    const out = join(root, "audit2.jsonl");
    const { manifest } = await materialize({ paths: [job], out });
    const run = JSON.parse(readFileSync(out, "utf8").split("\n")[0]!);
    expect(run).toMatchObject({ group_id: "job/a", weight_versions: ["7"], evidence: [{ path: "reward.json" }] });
    expect(await verifyOutput(out, { inputs: job })).toMatchObject({ ok: true });
    const file = join(job, "a__2", "t-a__2", "segments", readdirSync(join(job, "a__2", "t-a__2", "segments"))[0]!);
    const bytes = readFileSync(file);
    writeFileSync(file, Buffer.concat([bytes, Buffer.from("x")]));
    expect((await verifyOutput(out, { inputs: job })).problems.join()).toMatch(
      /input a__2\/t-a__2\/segments\/.* was changed/,
    );
    rmSync(file);
    expect((await verifyOutput(out, { inputs: job })).problems.join()).toMatch(/is not there any more/);
    writeFileSync(file, bytes);
    expect(manifest.inputs.length).toBeGreaterThan(4);
  });
});

describe("audit 3: what did the verifier say, and which rules made this number?", () => {
  it("recomputes reward and advantage from the stored scores and rules, and fails when one was changed", async () => {
    const out = join(root, "audit3.jsonl");
    await materialize({ paths: [job], out });
    expect((await verifyOutput(out)).problems).toEqual([]);
    const good = readFileSync(out, "utf8");
    writeFileSync(out, good.replace('"scores":{"reward":1}', '"scores":{"reward":0.5}'));
    expect((await verifyOutput(out)).problems.join("\n")).toMatch(/reward 1, its rule makes 0.5 of its scores/);
    writeFileSync(out, good.replace(/"advantage":0\.\d+/, '"advantage":0.9'));
    expect((await verifyOutput(out)).problems.join("\n")).toMatch(/sample 0: advantage 0.9, the rule gives 0.707/);
  });
});

describe("audit 4: did splitting, merging or packing change a rollout's weight?", () => {
  it("sums the weights of every run, and fails when one is off", async () => {
    const out = join(root, "audit4.jsonl");
    await materialize({ paths: [job], out });
    const good = readFileSync(out, "utf8");
    writeFileSync(out, good.replace('"weight":0.8,', '"weight":0.9,'));
    expect((await verifyOutput(out)).problems.join("\n")).toMatch(/sample weights sum to 1.1\d*, the run weighs 1/);
    writeFileSync(out, good.replace('"reason":"shared_prefix"', '"reason":"trained"'));
    const problems = (await verifyOutput(out)).problems.join("\n");
    expect(problems).toMatch(/tokens are trained, its coverage says/);
  });
});

describe("the report", () => {
  it("shows what was captured, what trains and what was masked, as tables", async () => {
    const report = await materialize({ paths: [job], out: join(root, "report.jsonl") });
    const tables = renderReport(report);
    expect(tables.map((table) => table.title)).toEqual(["materialized", "terminations", "runs"]);
    expect(tables.at(-1)!.rows[0]).toEqual(["job/a__1", "job/a", "1", "0.7071", "3", "2", "5", "5", "completed"]);
    for (const table of tables) for (const row of table.rows) expect(row).toHaveLength(table.columns.length);
  });
});

describe("reading", () => {
  it("takes the tokens of a torn or damaged file for what they are: the rest is kept, the run says that it is incomplete", async () => {
    const dir = await writeTrajectory(join(root, "damaged"), { id: "t-d", calls });
    const file = join(dir, "segments", readdirSync(join(dir, "segments"))[0]!);
    const bytes = readFileSync(file);
    bytes[bytes.length - 300]! ^= 0xff;
    writeFileSync(file, bytes);
    const evidence = readEvidence(dir, "t-d");
    expect(evidence.incomplete.length).toBeGreaterThan(0);
    const { manifest } = await materialize({ paths: [dir], out: join(root, "damaged.jsonl") });
    expect(manifest.terminations).toEqual({ capture_incomplete: 1 });
    expect(manifest.exclusions).toEqual({ capture_incomplete: 1 });
  });

  it("one broken trajectory among others is a run that says so and does not stop the rest", async () => {
    const job2 = join(root, "mixed");
    for (const name of ["m__1", "m__2"]) {
      putFile(join(job2, name, "reward.txt"), "1");
      await writeTrajectory(join(job2, name), { id: name, calls });
    }
    putFile(join(job2, "m__1", "m__1", "manifest.json"), '{"schema": "tito.manifest/v1", "trunc');
    const { manifest, runs } = await materialize({ paths: [job2], out: join(root, "mixed.jsonl") });
    expect(manifest.terminations).toEqual({ capture_incomplete: 1, completed: 1 });
    expect(runs.map((run) => run.weight)).toEqual([0, 1]);
  });

  it("a missing COMPLETE alone masks nothing", async () => {
    const dir = await writeTrajectory(join(root, "killed"), { id: "t-k", calls, unsealed: true });
    putFile(join(root, "killed", "reward.txt"), "1\n");
    const { manifest } = await materialize({ paths: [dir, join(root, "killed")], out: join(root, "killed.jsonl") });
    expect(manifest.coverage.trained_tokens).toBe(5);
    expect(manifest.counts.unsealed_trajectories).toBe(1);
  });
});
