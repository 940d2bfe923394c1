import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { PackedAudit } from "../../src/audit/packed-audit.js";
import { type OutputRow, readOutput } from "../../src/audit/read-output.js";
import { verifyOutput } from "../../src/audit/verify-output.js";
import { materialize } from "../../src/jobs/materialize.js";
import { loadPolicy } from "../../src/recipe/policy.js";
import type { Format } from "../../src/write/encoded-run.js";
import { temporaryDirectory } from "../temporary.js";
import { putFile, writeTrajectory } from "../written.js";

const root = temporaryDirectory();
const job = join(root, "job");

beforeAll(async () => {
  for (let i = 0; i < 5; i += 1) {
    const dir = join(job, `task-${i % 2}__${i}`);
    putFile(join(dir, "reward.json"), { reward: i / 4, tests_passed: i });
    const sampled = Array.from({ length: 3 + i }, (_, k) => 100 + k);
    const calls = [
      { prompt: [1, 2, 3 + i], sampled, logprobs: sampled.map((_, k) => (i === 3 ? -0.1 * k : -k / 8)) },
      { prompt: [1, 2, 3 + i, ...sampled, 4], sampled: [50 + i], delivery: "unknown" as const },
      { prompt: [1, 2, 9], sampled: [60, 61], lane: "aux:title" as const },
    ];
    if (i < 4) await writeTrajectory(dir, { id: `t${i}`, calls });
  }
});

async function rows(path: string, format: Format): Promise<OutputRow[]> {
  const all: OutputRow[] = [];
  for await (const row of readOutput(path, format)) all.push(row);
  return all;
}

/** Arrays of any kind as plain ones, so that formats can be compared. */
const plain = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value, (_key, inner: unknown) => (ArrayBuffer.isView(inner) ? Array.from(inner as never) : inner)),
  );

/** Id and log probability of every token that trains. */
function trainedPairs(row: OutputRow): [number, number][] {
  const arrays = "packed" in row ? row.packed : row.sample;
  if (arrays === null) return [];
  return Array.from(arrays.tokens).flatMap((id, i): [number, number][] =>
    arrays.loss_mask[i] === 1 ? [[id, arrays.logprobs[i]!]] : [],
  );
}

const sorted = (pairs: readonly [number, number][]) => pairs.map((pair) => pair.join(" ")).sort();

describe("output formats", () => {
  it("hold the same rows in JSONL, Parquet and msgpack, a run without samples included", async () => {
    const policy = loadPolicy("output: {row_group_rows: 2}");
    const read = new Map<Format, unknown>();
    for (const format of ["jsonl", "parquet", "msgpack"] as const) {
      const path = join(root, `all.${format}`);
      await materialize({ paths: [job], out: path, policy });
      read.set(format, plain(await rows(path, format)));
      expect(await verifyOutput(path)).toMatchObject({ ok: true, problems: [], runs: 5, samples: 8 });
    }
    expect(read.get("parquet")).toEqual(read.get("jsonl"));
    expect(read.get("msgpack")).toEqual(read.get("jsonl"));
    const last = (read.get("jsonl") as { run: { run_id: string }; sample: unknown }[]).find(
      (row) => row.sample === null,
    );
    expect(last?.run.run_id).toBe("job/task-0__4");
  });

  it("C4.32: whatever the mode, an output holds the captured log probability of every trained token, so that fidelity can be computed", async () => {
    const captured: [number, number][] = [];
    await materialize({ paths: [job], out: join(root, "captured.jsonl") });
    for (const row of await rows(join(root, "captured.jsonl"), "jsonl")) captured.push(...trainedPairs(row));
    expect(captured.length).toBeGreaterThan(10);
    const modes = ["build: {split: turn}", "build: {realign_max_lost_tokens: 4}", "pack: {max_tokens: 12}"];
    for (const yaml of [...modes, "credit: {weight: token, rule: none}"]) {
      for (const format of ["jsonl", "parquet", "msgpack"] as const) {
        const out = join(root, `fidelity.${format}`);
        await materialize({ paths: [job], out, policy: loadPolicy(yaml) });
        const pairs = (await rows(out, format)).flatMap(trainedPairs);
        expect(sorted(pairs), `${yaml} ${format}`).toEqual(sorted(captured));
      }
    }
  });

  it("writes the same Parquet bytes twice", async () => {
    await materialize({ paths: [job], out: join(root, "a.parquet") });
    await materialize({ paths: [job], out: join(root, "b.parquet") });
    expect(readFileSync(join(root, "a.parquet")).equals(readFileSync(join(root, "b.parquet")))).toBe(true);
  });

  it("C1.3: ids, mask and logprobs have the same length in every format", async () => {
    for (const format of ["jsonl", "parquet", "msgpack"] as const) {
      for (const row of await rows(join(root, `all.${format}`), format)) {
        if (!("sample" in row) || row.sample === null) continue;
        expect(row.sample.loss_mask).toHaveLength(row.sample.tokens.length);
        expect(row.sample.logprobs).toHaveLength(row.sample.tokens.length);
      }
    }
  });

  it("packs samples into rows of a bounded length with boundaries, positions and weights kept", async () => {
    const sums: number[] = [];
    for (const format of ["jsonl", "parquet", "msgpack"] as const) {
      const path = join(root, `packed.${format}`);
      const { manifest } = await materialize({
        paths: [job],
        out: path,
        policy: loadPolicy(null, { packMaxTokens: 24 }),
      });
      const verdict = await verifyOutput(path);
      expect(verdict.problems).toEqual([]);
      const packed = (await rows(path, format)).flatMap((row) => ("packed" in row ? [row.packed] : []));
      expect(packed.length).toBeLessThan(4);
      for (const row of packed) expect(row.tokens.length).toBeLessThanOrEqual(24);
      expect(verdict.weight).toBeCloseTo(manifest.weight, 12);
      sums.push(verdict.tokens);
    }
    expect(new Set(sums).size).toBe(1);
  });

  it("O.86: keeps group, reward, trial and exclusion of every part in every format, and verify compares them", async () => {
    const policy = loadPolicy("exclude: {rules: [{reason: poor, when: reward < 0.5}]}", {
      packMaxTokens: 24,
      credit: "grpo-no-std",
    });
    const whole = join(root, "unpacked.jsonl");
    await materialize({ paths: [job], out: whole, policy: { ...policy, pack: { ...policy.pack, max_tokens: null } } });
    const expected = (await rows(whole, "jsonl")).flatMap((row) => {
      if ("packed" in row || row.sample === null || row.sample.trained_tokens === 0) return [];
      const { run_id, trial_id, attempt, group_id, reward, excluded } = row.run;
      const { sample_index, advantage, advantage_per_action, weight } = row.sample;
      return [
        {
          run_id,
          trial_id,
          attempt,
          group_id,
          reward,
          excluded,
          sample: sample_index,
          advantage,
          advantage_per_action,
          weight,
        },
      ];
    });
    expect(new Set(expected.map((part) => part.excluded))).toEqual(new Set(["poor", null]));
    expect(new Set(expected.map((part) => part.group_id)).size).toBe(2);
    const key = (part: object) => JSON.stringify(Object.entries(part).sort());
    for (const format of ["jsonl", "parquet", "msgpack"] as const) {
      const path = join(root, `kept.${format}`);
      await materialize({ paths: [job], out: path, policy });
      const parts = (await rows(path, format)).flatMap((row) => ("packed" in row ? row.packed.parts : []));
      const kept = parts.map(({ start: _, end: __, ...part }) => key(part));
      expect(kept.sort()).toEqual(expected.map(key).sort());
      expect((await verifyOutput(path)).problems).toEqual([]);
    }
    const path = join(root, "kept.jsonl");
    const good = readFileSync(path, "utf8");
    const cases: [string, string, RegExp][] = [
      ['"excluded":"poor"', '"excluded":null', /a reward of 0 and no advantage/],
      ['"excluded":null', '"excluded":"poor"', /excluded, and has an advantage or a weight/],
      ['"weight":1}', '"weight":0.5}', /the samples of its run weigh 0.5/],
      ['"trial_id":', '"trial":', /trial_id/],
    ];
    for (const [from, to, problem] of cases) {
      expect(good).toContain(from);
      writeFileSync(path, good.replace(from, to));
      expect((await verifyOutput(path)).problems.join("\n")).toMatch(problem);
    }
  });

  it("O.86: verify notices parts of one run that disagree, and equal rewards of a group with other advantages", async () => {
    const part = { run_id: "r", trial_id: "t", attempt: 1, group_id: "g", reward: 1, excluded: null, sample: 0 };
    const row = (parts: object[]) => ({
      tokens: parts.flatMap(() => [1]),
      loss_mask: parts.flatMap(() => [1]),
      logprobs: parts.flatMap(() => [0]),
      position_ids: parts.flatMap(() => [0]),
      schema: "tito.packed_sample/v1" as const,
      parts: parts.map((each, i) => ({ ...part, advantage: 0.5, weight: 0.5, ...each, start: i, end: i + 1 })),
    });
    const problemsOf = (parts: object[]) => {
      const problems: string[] = [];
      const audit = new PackedAudit((text) => problems.push(text));
      audit.row(row(parts), "f");
      audit.end(loadPolicy(null));
      return problems.join("\n");
    };
    expect(problemsOf([{}, { sample: 1 }])).toBe("");
    expect(problemsOf([{}, {}])).toMatch(/packed twice/);
    expect(problemsOf([{}, { sample: 1, group_id: "h" }])).toMatch(/group_id h, and g in/);
    expect(problemsOf([{}, { sample: 1, reward: 0 }])).toMatch(/reward 0, and 1 in/);
    expect(problemsOf([{}, { sample: 1, excluded: "x", advantage: null, weight: 0 }])).toMatch(/excluded x, and null/);
    expect(problemsOf([{ weight: 1 }, { run_id: "s", weight: 1, advantage: 0.25 }])).toMatch(/0.5 for the same reward/);
    expect(problemsOf([{ weight: 1 }, { run_id: "s", weight: 1 }])).toBe("");
  });

  it("verify notices an output that was changed, cut or left unfinished", async () => {
    const path = join(root, "tampered.jsonl");
    await materialize({ paths: [job], out: path });
    const good = readFileSync(path, "utf8");
    writeFileSync(path, good.replace('"loss_mask":[0,0,0,1', '"loss_mask":[0,0,1,1'));
    const verdict = await verifyOutput(path);
    expect(verdict.ok).toBe(false);
    expect(verdict.problems.join("\n")).toMatch(/another digest/);
    expect(verdict.problems.join("\n")).toMatch(/token 2 has loss mask 1/);
    writeFileSync(path, good);
    appendFileSync(path, "{}\n");
    expect((await verifyOutput(path)).problems.join("\n")).toMatch(/row 6/);
    await expect(verifyOutput(join(root, "nothing.jsonl"))).rejects.toMatchObject({ code: "not_found" });
  });

  it("audit: a weight that splitting or packing changed is noticed", async () => {
    const path = join(root, "weights.jsonl");
    await materialize({ paths: [job], out: path });
    writeFileSync(
      path,
      readFileSync(path, "utf8").replace('"weight":1,"finish_reason"', '"weight":0.5,"finish_reason"'),
    );
    expect((await verifyOutput(path)).problems.join("\n")).toMatch(/sample weights sum to 0.5, the run weighs 1/);
  });
});
