import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { verifyOutput } from "../../src/audit/verify-output.js";
import { materialize } from "../../src/jobs/materialize.js";
import { loadPolicy } from "../../src/recipe/policy.js";
import { writeTrial } from "../across/many-trials.js";
import { temporaryDirectory } from "../temporary.js";

const root = temporaryDirectory();
const job = join(root, "job");

beforeAll(async () => {
  for (let i = 0; i < 24; i += 1) await writeTrial(job, i, { group: 3 });
});

const lines = (file: string) =>
  readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "");

describe("one share of a job", () => {
  it("n shares hold the rows of the whole, each once, byte for byte, and each share verifies", async () => {
    const whole = join(root, "whole.jsonl");
    await materialize({ paths: [job], out: whole });
    for (const count of [1, 2, 5, 40]) {
      const rows: string[] = [];
      for (let index = 0; index < count; index += 1) {
        const out = join(root, `${count}-${index}.jsonl`);
        await materialize({ paths: [job], out, shard: { index, count } });
        if (count <= 5) expect((await verifyOutput(out, { inputs: job })).problems).toEqual([]);
        rows.push(...lines(out));
      }
      expect(rows.sort()).toEqual(lines(whole).sort());
    }
  });

  it("a group is never in two shares", async () => {
    const seen = new Map<string, number>();
    for (let index = 0; index < 3; index += 1) {
      const out = join(root, `group-${index}.jsonl`);
      await materialize({ paths: [job], out, shard: { index, count: 3 } });
      for (const line of lines(out)) {
        const { group_id, group } = JSON.parse(line) as { group_id: string; group: { size: number } };
        expect(group.size).toBe(3);
        expect(seen.get(group_id) ?? index).toBe(index);
        seen.set(group_id, index);
      }
    }
    expect(seen.size).toBe(8);
    expect(new Set(seen.values()).size).toBeGreaterThan(1);
  });

  it("refuses a policy under which a row depends on runs outside its group", async () => {
    const wide = [
      "credit: {rule: batch-baseline}",
      "credit: {weight: token}",
      "credit: {group: run.task}",
      "select: {max_version_age: 1}",
      "pack: {max_tokens: 100}",
    ];
    for (const text of wide) {
      const out = join(root, "refused.jsonl");
      const made = materialize({ paths: [job], out, policy: loadPolicy(text), shard: { index: 0, count: 2 } });
      await expect(made, text).rejects.toMatchObject({ code: "usage" });
    }
    const policy = loadPolicy("select: {max_version_age: 1, current_version: 7}");
    await materialize({ paths: [job], out: join(root, "stated.jsonl"), policy, shard: { index: 0, count: 2 } });
  });
});
