import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { statsOf } from "../../src/across/stats.js";
import { bar, renderStats } from "../../src/across/stats-report.js";
import { spreadOf } from "../../src/across/sum-figures.js";
import { loadPolicy } from "../../src/recipe/policy.js";
import { temporaryDirectory } from "../temporary.js";
import { writeTrial } from "./many-trials.js";

const job = join(temporaryDirectory(), "job");
const FIXTURES = join(import.meta.dirname, "../../../../fixtures/trajectories");

beforeAll(async () => {
  mkdirSync(job);
  for (let i = 0; i < 6; i += 1) await writeTrial(job, i);
});

async function stats(paths = [job], policy = "") {
  return (await statsOf({ paths, policy: loadPolicy(policy) })).stats!;
}

describe("tito stats", () => {
  it("counts six trials as one does by hand", async () => {
    const made = await stats();
    // Six trials of 4 + 3 sampled ids; two of them (0 and 3) have a third call with 2.
    expect(made).toMatchObject({
      runs: 6,
      groups: 2,
      turns: 14,
      reward_mean: 0.5,
      coverage: { captured_tokens: 46, eligible_tokens: 46, trained_tokens: 46, masked: {} },
      trained_of_eligible: 1,
      // 8 prompt ids, 4 sampled, 2 context, 3 sampled = 17; the drifted samples hold 16 of them, another one and 2 sampled = 19.
      sample_tokens: { min: 17, p50: 17, p90: 19, p99: 19, max: 19, mean: 17.5 },
      samples_per_run: { min: 1, p50: 1, p90: 2, max: 2 },
      split: { samples: 8, sample_tokens: 140, repeated_tokens: 32, trained_tokens: 46, overwritten_tokens: 0 },
      terminations: { completed: 6 },
      exclusions: {},
      versions: [{ version: "7", age: 0, tokens: 46 }],
      not_whole: [],
    });
    expect(Object.values(made.openings).reduce((a, b) => a + b)).toBe(8);
  });

  it("says what each realign bound saves and loses, as materializing under it does", async () => {
    const made = await stats();
    expect(made.realign[0]).toEqual({
      bound: 1,
      samples_saved: 2,
      // The shared 16 tokens of both are computed once only; the last sampled id of each parent is given up.
      repeated_tokens_saved: 32,
      trained_tokens_lost: 2,
    });
    const realigned = await stats([job], "build: {realign_max_lost_tokens: 1}");
    expect(realigned.split.samples).toBe(made.split.samples - 2);
    expect(realigned.coverage.trained_tokens).toBe(44);
    expect(realigned.coverage.masked).toEqual({ realign_overwritten: 2 });
    expect(realigned.realign[0]).toMatchObject({ samples_saved: 0, trained_tokens_lost: 0 });
  });

  it("classes of log probabilities hold every trained token once, in each policy", async () => {
    for (const policy of ["", "build: {split: turn}", "select: {lanes: {sub_agent: mask}}"]) {
      const made = await stats([FIXTURES], policy);
      const tokens = made.logprobs.classes.reduce((sum, each) => sum + each.tokens, 0);
      expect(tokens).toBe(made.coverage.trained_tokens);
      const parts = made.parts.reduce((sum, part) => sum + part.captured_tokens, 0);
      expect(parts).toBe(made.coverage.captured_tokens);
      const versions = made.versions.reduce((sum, version) => sum + version.tokens, 0);
      expect(versions).toBe(made.coverage.captured_tokens);
    }
  });

  it("counts the ages of weight versions from the newest", async () => {
    const made = await stats([FIXTURES]);
    expect(made.versions.map(({ version, age }) => [version, age])).toEqual([
      ["step-9", 0],
      ["7", 2],
      ["step-6", 3],
    ]);
  });

  it("goes on from its notes, counts a cut line again, and notices a changed trial", async () => {
    const notes = join(temporaryDirectory(), "notes");
    const controller = new AbortController();
    const stopped = await statsOf({
      paths: [job],
      notes,
      signal: controller.signal,
      onProgress: ({ done }) => done === 3 && controller.abort(),
    });
    expect(stopped).toEqual({ stats: null, done: 3, total: 6 });
    const lines = readFileSync(notes, "utf8").split("\n");
    expect(lines.filter((line) => line !== "")).toHaveLength(3);
    // A kill in the middle of the third line; and the first line's figures made recognisable.
    const first = lines[0]!.replace('"turns":3', '"turns":300');
    writeFileSync(notes, [first, lines[1], lines[2]!.slice(0, 40)].join("\n"));
    const { stats: resumed } = await statsOf({ paths: [job], notes });
    expect(resumed!.turns).toBe(14 + 297);
    expect(resumed!.runs).toBe(6);
    const { stats: other } = await statsOf({ paths: [job], notes, policy: loadPolicy("build: {split: turn}") });
    expect(other!.turns).toBe(14);
  });

  it("prints tables with bars, nothing of what is not there", async () => {
    const tables = renderStats(await stats());
    const titles = tables.map((table) => table.title);
    expect(titles).toContain("what --realign-max-lost-tokens would save and lose");
    expect(titles).not.toContain("exclusions");
    expect(titles).not.toContain("runs that are not whole");
    expect(tables[0]!.rows[2]).toEqual(["trained", "46", "100.0 %", "█".repeat(20)]);
    expect([bar(0), bar(0.001), bar(0.5), bar(2)]).toEqual(["", "▏", "█".repeat(10), "█".repeat(20)]);
  });

  it("percentiles are values that occur", () => {
    expect(spreadOf([])).toBeNull();
    expect(spreadOf([3])).toEqual({ min: 3, p50: 3, p90: 3, p99: 3, max: 3, mean: 3 });
    const hundred = Array.from({ length: 100 }, (_, i) => 100 - i);
    expect(spreadOf(hundred)).toEqual({ min: 1, p50: 50, p90: 90, p99: 99, max: 100, mean: 50.5 });
  });
});
