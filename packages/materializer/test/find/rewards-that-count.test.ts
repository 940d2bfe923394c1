/** O.81: rewards that their runner, or else the table, does not let count are excluded and told; results are those of Harbor's own models. */
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { parseHarborResult } from "../../src/find/harbor.js";
import { materialize } from "../../src/jobs/materialize.js";
import type { RolloutRun } from "../../src/write/rollout-run.js";
import { temporaryDirectory } from "../temporary.js";
import { putFile, writeTrajectory } from "../written.js";

const results = resolve(import.meta.dirname, "..", "fixtures", "harbor-0.26.0");
const golden = (name: string): Result => JSON.parse(readFileSync(join(results, `${name}.json`), "utf8")) as Result;
const { harbor, policies } = golden("error-policies") as unknown as {
  harbor: string;
  policies: Record<string, { has_valid_reward: boolean }>;
};
const cases = readdirSync(results).flatMap((file) =>
  file.endsWith(".json") && file !== "error-policies.json" ? [file.slice(0, -5)] : [],
);

interface Exception {
  exception_type: string;
  policy?: { has_valid_reward: boolean };
  policy_override?: { has_valid_reward: boolean };
}
interface Result {
  reward_valid?: boolean | null;
  verifier_result: { rewards: Record<string, number> } | null;
  exception_info: Exception | null;
  config: { override_error_policy: object };
  step_results: { exception_info: Exception | null; verifier_result: unknown }[] | null;
}

/** The same result as an earlier Harbor wrote it: nothing about the validity of its reward. */
function silent(result: Result): Result {
  const { reward_valid: _, ...rest } = structuredClone(result);
  for (const one of [rest, ...(rest.step_results ?? [])]) {
    if (one.exception_info === null) continue;
    delete one.exception_info.policy;
    delete one.exception_info.policy_override;
  }
  return rest;
}

function facts(result: object) {
  const read = parseHarborResult(JSON.stringify(result));
  if (read === null || typeof read === "string") throw new Error(`not read: ${read}`);
  return read;
}

describe("the reader of Harbor's result", () => {
  it.each(cases)("says of %s what Harbor's own models say", (name) => {
    const result = golden(name);
    const counts = facts(result).reward_not_valid === null;
    expect(counts).toBe(result.reward_valid);
  });

  it("agrees with Harbor's whole table where an older result says nothing", () => {
    expect(harbor).toBe("0.26.0");
    const failed = silent(golden("rate-limit"));
    const ours = Object.keys(policies).map((exception_type) => {
      const result = { ...failed, exception_info: { ...failed.exception_info, exception_type } };
      return [exception_type, facts(result).reward_not_valid === null];
    });
    const theirs = Object.entries(policies).map(([name, policy]) => [name, policy.has_valid_reward]);
    expect(ours).toEqual(theirs);
    expect(ours.length).toBeGreaterThan(50);
  });

  it.each([
    "ReadTimeout",
    "ConnectTimeout",
    "ConnectionResetError",
    "RemoteProtocolError",
    "RequestThrottled",
    "InfrastructureTimeout",
    "DockerException",
    "ServiceUnavailable",
  ])("does not count a reward beside %s when nobody says that it counts", (exception_type) => {
    const failed = silent(golden("rate-limit"));
    expect(facts({ ...failed, exception_info: { exception_type } })).toMatchObject({
      reward_not_valid: `${exception_type} (by the table)`,
    });
  });

  it("believes an override that only the configuration holds, and a false beside a true", () => {
    const overridden = golden("overridden-to-valid");
    expect(facts(silent(overridden)).reward_not_valid).toBeNull();
    expect(facts(silent(golden("overridden-to-invalid"))).reward_not_valid).toMatch(/AgentTimeoutError/);
    const contradicting = { ...golden("rate-limit"), reward_valid: true };
    expect(facts(contradicting).reward_not_valid).toBe("ApiRateLimitError (Harbor calls it not valid)");
    expect(facts({ ...golden("solved"), reward_valid: false }).reward_not_valid).toMatch(/names no exception/);
  });

  it("tells of a reward that Harbor counts beside a failing machine it does not know", () => {
    const result = { ...golden("unknown-exception"), exception_info: { exception_type: "ConnectionResetError" } };
    expect(facts(result)).toMatchObject({
      reward_not_valid: null,
      doubts: ["Harbor counts the reward although the trial met ConnectionResetError"],
    });
    expect(facts(golden("overridden-to-valid")).doubts).toEqual([]);
  });

  it("finds the failure of a step, its place and how the trial ended by it", () => {
    expect(facts(golden("step-network"))).toMatchObject({
      reward_not_valid: "NetworkConnectionError in step plan (Harbor calls it not valid)",
      failure: { type: "NetworkConnectionError", message: "it failed (in step plan)" },
      steps: 2,
    });
  });
});

const calls = [{ prompt: [1], sampled: [10, 11] }];

async function materialized(trials: Record<string, Record<string, unknown>>, rewards?: object) {
  const root = temporaryDirectory();
  for (const [name, files] of Object.entries(trials)) {
    for (const [file, content] of Object.entries(files)) putFile(join(root, "j", name, file), content);
    await writeTrajectory(join(root, "j", name, "agent"), { id: `t-${name}`, calls });
  }
  if (rewards !== undefined) putFile(join(root, "rewards.json"), rewards);
  const out = join(root, "out.jsonl");
  const report = await materialize({
    paths: [join(root, "j")],
    out,
    rewards: rewards === undefined ? undefined : join(root, "rewards.json"),
  });
  const lines = readFileSync(out, "utf8").trim().split("\n");
  return { runs: lines.map((line) => JSON.parse(line) as RolloutRun), manifest: report.manifest };
}

describe("a job of Harbor's results", () => {
  const named = (name: string, result: Result) => ({
    "result.json": { ...result, trial_name: name, task_name: "add" },
  });

  it.each([
    ["as Harbor 0.26.0 writes them", (result: Result) => result],
    ["as an older one does", silent],
  ])("trains no reward that does not count, %s, and says so", async (_how, form) => {
    const trials = Object.fromEntries(cases.map((name) => [`add__${name}`, named(`add__${name}`, form(golden(name)))]));
    const { runs, manifest } = await materialized(trials);
    for (const run of runs) {
      const { reward_valid, verifier_result } = golden(run.trial_id.slice("add__".length));
      const rewarded = verifier_result !== null;
      // The older form holds no override beside the exception of a step: the table decides.
      const counts = reward_valid === true && !(form === silent && run.trial_id === "add__step-overridden-to-valid");
      expect([run.trial_id, run.weight > 0]).toEqual([run.trial_id, counts]);
      expect(run.excluded === null).toBe(counts || (!rewarded && run.termination !== "env_error"));
      if (!rewarded || counts) continue;
      expect(manifest.warnings.join("\n")).toContain(`run ${run.run_id}: its reward does not count: `);
    }
    expect(manifest.exclusions).toMatchObject({ reward_not_valid: 1 });
  });

  it("does not take a reward file for a reward that the result calls not valid", async () => {
    const { runs } = await materialized({
      a__1: { ...named("a__1", golden("no-reward")), "verifier/reward.txt": "1" },
      a__2: { ...named("a__2", silent(golden("no-reward"))), "verifier/reward.txt": "1" },
    });
    expect(runs.map((run) => [run.reward, run.excluded, run.weight])).toEqual([
      [1, "reward_not_valid", 0],
      [1, null, 1],
    ]);
  });

  it("counts what the mapping file says in place of the runner's reward, and nothing that it only adds", async () => {
    const overridden = golden("overridden-to-invalid");
    const { runs } = await materialized(
      { a__1: named("a__1", overridden), a__2: named("a__2", overridden), a__3: named("a__3", golden("solved")) },
      { a__1: { reward: 0 }, a__2: { style: 1 }, a__3: { reward_valid: false } },
    );
    expect(runs.map((run) => [run.reward, run.excluded])).toEqual([
      [0, null],
      [1, "reward_not_valid"],
      [1, "reward_not_valid"],
    ]);
  });

  it("reads a plain runner's own word", async () => {
    const { runs } = await materialized({
      a__1: { "reward.json": { reward: 1, reward_valid: false } },
      a__2: { "reward.json": { reward: 1, reward_valid: true } },
    });
    expect(runs.map((run) => run.excluded)).toEqual(["reward_not_valid", null]);
  });
});
