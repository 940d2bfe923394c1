import { appendFileSync, existsSync, mkdirSync, readFileSync, renameSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { Follower } from "../../src/jobs/follow.js";
import { materialize } from "../../src/jobs/materialize.js";
import { loadPolicy } from "../../src/recipe/policy.js";
import { writeTrial } from "../across/many-trials.js";
import { temporaryDirectory } from "../temporary.js";

const HOUR_MS = 3_600_000;
const now = () => Date.now();

function place() {
  const root = temporaryDirectory();
  const job = join(root, "job");
  mkdirSync(job);
  const out = join(root, "runs.jsonl");
  const follower = (groupSize = 4) => new Follower({ paths: [job], out, groupSize, groupTimeoutMs: HOUR_MS });
  const lines = () => (existsSync(out) ? readFileSync(out, "utf8").split("\n").slice(0, -1) : []);
  const ids = () => lines().map((line) => (JSON.parse(line) as { run_id: string }).run_id);
  return { root, job, out, follower, lines, ids };
}

describe("following trials that still go on", () => {
  it("emits a group when it is complete, and leaves what is still written alone", async () => {
    const { root, job, follower, lines } = place();
    const one = follower();
    one.pass(now());
    expect(lines()).toEqual([]);
    for (const i of [0, 1, 2]) await writeTrial(job, i);
    const open = await writeTrial(job, 3, { unsealed: true });
    renameSync(join(open, "result.json"), join(root, "later.json"));
    one.pass(now());
    expect(lines()).toEqual([]);
    renameSync(join(root, "later.json"), join(open, "result.json"));
    one.pass(now());
    one.pass(now());
    expect(lines()).toHaveLength(4);
    await materialize({ paths: [job], out: join(root, "whole.jsonl") });
    expect(lines().join("\n")).toBe(readFileSync(join(root, "whole.jsonl"), "utf8").trimEnd());
  });

  it("emits an incomplete group after the timeout, and a late member by itself with credit over all", async () => {
    const { root, job, follower, lines, ids } = place();
    const one = follower();
    for (const i of [0, 1]) await writeTrial(job, i);
    one.pass(now() + HOUR_MS / 2);
    expect(lines()).toEqual([]);
    one.pass(now() + HOUR_MS + 60_000);
    expect(ids()).toHaveLength(2);
    for (const i of [2, 3]) await writeTrial(job, i);
    one.pass(now());
    expect(ids()).toHaveLength(4);
    expect(new Set(ids()).size).toBe(4);
    await materialize({ paths: [job], out: join(root, "whole.jsonl") });
    expect(lines().slice(2)).toEqual(readFileSync(join(root, "whole.jsonl"), "utf8").split("\n").slice(2, 4));
  });

  it("a sealed trial waits for its reward, and goes out without one after the timeout", async () => {
    const { job, follower, lines } = place();
    const dir = await writeTrial(job, 0);
    writeFileSync(join(dir, "result.json"), "{");
    const one = follower(1);
    one.pass(now());
    expect(lines()).toEqual([]);
    one.pass(now() + HOUR_MS + 60_000);
    expect(lines().map((line) => JSON.parse(line).reward)).toEqual([null]);
  });

  it("O.162 loses and repeats nothing, wherever a kill cut the output off", async () => {
    const { root, job, out, follower, lines } = place();
    for (let i = 0; i < 8; i += 1) await writeTrial(job, i);
    follower().pass(now());
    const whole = readFileSync(out);
    expect(lines()).toHaveLength(8);
    for (let cut = 0; cut <= whole.length; cut += 331) {
      writeFileSync(out, whole);
      truncateSync(out, cut);
      follower().pass(now());
      expect(readFileSync(out).equals(whole), `cut at ${cut}`).toBe(true);
    }
    follower().pass(now());
    expect(readFileSync(out).equals(whole)).toBe(true);
    appendFileSync(out, "{}\n");
    expect(() => follower()).toThrow(/line 9 is no run/);
    const given = { paths: [job], groupSize: 1, groupTimeoutMs: 1 };
    expect(() => new Follower({ ...given, out: join(root, "x.parquet") })).toThrow(/\.jsonl/);
    const policy = loadPolicy("credit: {rule: batch-baseline}");
    expect(() => new Follower({ ...given, out: join(root, "y.jsonl"), policy })).toThrow(/--follow/);
  });
});
