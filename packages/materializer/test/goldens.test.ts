/** Committed trajectories and what they become: bytes that must not change by accident, and policies that change only what they are about. */
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { verifyOutput } from "../src/audit/verify-output.js";
import { materialize } from "../src/jobs/materialize.js";
import { loadPolicy } from "../src/recipe/policy.js";
import { type RolloutRun, rolloutRunJsonSchema, rolloutRunSchema } from "../src/write/rollout-run.js";
import { GOLDEN_POLICIES } from "./fixture-job.js";
import { temporaryDirectory } from "./temporary.js";

const fixtures = resolve(import.meta.dirname, "..", "..", "..", "fixtures", "trajectories");
const job = join(fixtures, "job-1");
const root = temporaryDirectory();

const golden = (name: string) => readFileSync(join(fixtures, "goldens", name));
const runs = (name: string): RolloutRun[] =>
  golden(name)
    .toString("utf8")
    .trim()
    .split("\n")
    .map((line) => rolloutRunSchema.parse(JSON.parse(line)));

describe("committed trajectories", () => {
  it.each(Object.keys(GOLDEN_POLICIES))("become the committed samples under the policy %s", async (name) => {
    const out = join(root, `${name}.jsonl`);
    await materialize({ paths: [job], out, policy: loadPolicy(GOLDEN_POLICIES[name]!) });
    expect(readFileSync(out, "utf8")).toBe(golden(`${name}.jsonl`).toString("utf8"));
    expect(readFileSync(`${out}.manifest.json`, "utf8")).toBe(golden(`${name}.jsonl.manifest.json`).toString("utf8"));
    expect((await verifyOutput(out, { inputs: job })).problems).toEqual([]);
  });

  it.each(["parquet", "msgpack"])("become the same %s bytes", async (format) => {
    const out = join(root, `default.${format}`);
    await materialize({ paths: [job], out });
    expect(readFileSync(out).equals(golden(`default.${format}`))).toBe(true);
    expect((await verifyOutput(out)).problems).toEqual([]);
  });

  it("show what they are there for", () => {
    const byTrial = new Map(runs("default.jsonl").map((run) => [`${run.trial_id}/${run.attempt}`, run]));
    expect(byTrial.get("add__kT9x/1")!.coverage.masked).toEqual({
      client_gone: 1,
      retry_orphan: 2,
      delivery_unknown: 2,
    });
    expect(byTrial.get("add__Vb3n/1")).toMatchObject({
      termination: "env_error",
      excluded: "env_error",
      samples: [],
      group: { flags: ["lost_members"] },
    });
    expect(byTrial.get("plan__c0Lm/1")!.trajectory_ids).toEqual(["plan-1", "plan-1b"]);
    expect(byTrial.get("plan-x/1")).toMatchObject({ excluded: "superseded_by_attempt_2", weight: 0 });
    expect(byTrial.get("plan-x/2")).toMatchObject({
      excluded: null,
      weight: 1,
      group: { size: 3, counted: 3, flags: [] },
    });
  });
});

describe("the same log under another policy", () => {
  /** Everything about a run that a policy about building must not touch. */
  const facts = ({ samples: _samples, coverage: _coverage, outside: _outside, weight: _weight, ...rest }: RolloutRun) =>
    rest;

  it("splitting changes samples and weights of samples, not coverage, credit or what happened", () => {
    const [whole, split] = [runs("default.jsonl"), runs("split-turn.jsonl")];
    expect(split.map(facts)).toEqual(whole.map(facts));
    expect(split.map((run) => run.coverage)).toEqual(whole.map((run) => run.coverage));
    const trained = (run: RolloutRun) =>
      run.samples.flatMap((sample) => sample.tokens.filter((_, i) => sample.loss_mask[i] === 1)).sort((a, b) => a - b);
    expect(split.map(trained)).toEqual(whole.map(trained));
  });

  it("realignment changes only the run that drifted: one sample less, the lost token counted", () => {
    const [plain, joined] = [runs("default.jsonl"), runs("realign.jsonl")];
    const changed = joined.filter((run, i) => JSON.stringify(run) !== JSON.stringify(plain[i]));
    expect(changed.map((run) => run.trial_id)).toEqual(["add__kT9x"]);
    expect(changed[0]!.samples).toHaveLength(3);
    expect(changed[0]!.coverage.masked).toEqual({
      client_gone: 1,
      retry_orphan: 2,
      delivery_unknown: 2,
      realign_overwritten: 1,
    });
  });

  it("selection changes masks and counts, never tokens or logprobs", () => {
    const [plain, lenient] = [runs("default.jsonl"), runs("lenient.jsonl")];
    const arrays = (run: RolloutRun) => run.samples.map(({ tokens, logprobs }) => ({ tokens, logprobs }));
    expect(lenient.map(arrays)).toEqual(plain.map(arrays));
    expect(lenient[2]!.coverage.trained_tokens).toBe(10);
    expect(lenient.map((run) => run.coverage.captured_tokens)).toEqual(
      plain.map((run) => run.coverage.captured_tokens),
    );
  });

  it("C6.44: every row says which reward and credit rule made its numbers", () => {
    for (const run of runs("lenient.jsonl")) {
      expect(run.reward_rule).toBe("reward + 0.5 * coalesce(style, 0)");
      expect(run.credit_rule).toBe("batch-baseline");
    }
  });
});

describe("the JSON Schema", () => {
  it("is the committed one", () => {
    const file = resolve(import.meta.dirname, "..", "schema", "rollout-run.v1.schema.json");
    expect(JSON.parse(readFileSync(file, "utf8"))).toEqual(JSON.parse(JSON.stringify(rolloutRunJsonSchema())));
  });

  it("refuses a run with an unknown key, a missing array or a reason that is not on the list", () => {
    const run = runs("default.jsonl")[0]!;
    const sample = run.samples[0]!;
    expect(rolloutRunSchema.safeParse({ ...run, extra: 1 }).success).toBe(false);
    const { logprobs: _logprobs, ...without } = sample;
    expect(rolloutRunSchema.safeParse({ ...run, samples: [without] }).success).toBe(false);
    const spans = [{ ...sample.spans[0]!, reason: "because" }];
    expect(rolloutRunSchema.safeParse({ ...run, samples: [{ ...sample, spans }] }).success).toBe(false);
  });
});
