import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { readTrajectory, turnsInCommitOrder } from "@tito/format";
import { describe, expect, it } from "vitest";
import { type ImportReport, importLog } from "../../src/index.js";
import { temporaryDir } from "../temporary.js";

/** A trial's result.json, as far as an import reads it. */
const trial = (rollout_details: unknown) => ({
  task_name: "fix-test",
  trial_name: "fix-test__Ab3dE",
  agent_info: { name: "terminus-2", model_info: { name: "qwen3", provider: "hosted_vllm" } },
  agent_result: { n_input_tokens: 9, rollout_details },
});

async function imported(value: unknown, name = "result.json", text = JSON.stringify(value, null, 2)) {
  const dir = temporaryDir();
  const log = join(dir, name);
  writeFileSync(log, text);
  const out = join(dir, "out");
  const report: ImportReport = await importLog({ logs: [log], out, durability: "write" });
  const turns = report.trajectories.map((one) =>
    turnsInCommitOrder(readTrajectory(join(out, one.trajectory_id), { mode: "strict" })),
  );
  return { report, turns, read: (id: string) => readTrajectory(join(out, id), { mode: "strict" }) };
}

describe("rollout_details", () => {
  const histories = [
    {
      prompt_token_ids: [
        [1, 2],
        [1, 2, 3, 4],
      ],
      completion_token_ids: [[3], [5, 6]],
      logprobs: [[-0.5], [-1, -2]],
    },
    { prompt_token_ids: [[7]], completion_token_ids: [[8]], logprobs: [[-3]] },
  ];

  it("of a trial's result make one trajectory under the trial's name: the first history is the main agent's", async () => {
    const { report, turns, read } = await imported(trial(histories));
    expect(report.trajectories).toMatchObject([{ trajectory_id: "fix-test__Ab3dE", turns: 3, segments: 2 }]);
    expect(turns[0]!.map((turn) => [turn.record.lane, turn.record.decision.reason])).toEqual([
      ["main", "first_turn"],
      ["main", "extends_tip"],
      ["sub:1", "new_lineage"],
    ]);
    const header = read("fix-test__Ab3dE").journals[0]!.header!;
    expect(header).toMatchObject({ trial_id: "fix-test__Ab3dE", metadata: { task: "fix-test" } });
    expect(turns[0]![1]!.record.engine.model).toBe("qwen3");
  });

  it("are what the agent itself had: its answers were delivered", async () => {
    const { read } = await imported(trial(histories));
    expect([...read("fix-test__Ab3dE").deliveries.values()].map((all) => all[0]!.outcome)).toEqual(
      Array(3).fill("delivered"),
    );
  });

  it("O.80: of a multi-step trial are those of every step, in its order; each step's first history is the main agent's", async () => {
    const steps = resolve(import.meta.dirname, "../../../materializer/test/fixtures/harbor-0.26.0/steps-solved.json");
    const { report, turns } = await imported(null, "result.json", readFileSync(steps, "utf8"));
    expect(report.trajectories).toMatchObject([{ trajectory_id: "add__7hQ2", turns: 4, segments: 2, uncaptured: 0 }]);
    expect(turns[0]!.map(({ record }) => [record.lane, [...record.sampled_ids], record.decision.reason])).toEqual([
      ["main", [10, 11], "first_turn"],
      ["main", [12], "extends_tip"],
      ["main", [20], "new_lineage"],
      ["main", [21, 22], "extends_tip"],
    ]);
    const one = { agent_result: { rollout_details: histories } };
    const both = await imported({ ...trial(histories), step_results: [one, { agent_result: null }, one, null, {}] });
    expect(both.report.trajectories).toMatchObject([{ turns: 9, sampled_tokens: 12 }]);
    expect(both.turns[0]!.filter(({ record }) => record.lane === "sub:1")).toHaveLength(3);
    const broken = { trial_name: "a__1", step_results: [one, { agent_result: { rollout_details: [7] } }] };
    await expect(imported(broken)).rejects.toThrow("step_results[1].rollout_details[0] is not an object");
  });

  it("stand one trial a line too, and bare histories get a trajectory each", async () => {
    const text = histories.map((history) => JSON.stringify(history)).join("\n");
    const { report } = await imported(null, "rollouts.jsonl", text);
    expect(report.trajectories.map((one) => one.trajectory_id)).toEqual(["rollouts-1", "rollouts-2"]);
  });

  it("with fewer completions than prompts are refused: which belong together is not known", async () => {
    const value = trial([{ prompt_token_ids: [[1], [2]], completion_token_ids: [[3]] }]);
    await expect(imported(value)).rejects.toMatchObject({
      code: "format_invalid",
      message: expect.stringMatching(/result\.json:1: .*2 prompts and 1 completions/),
    });
  });

  it("with log probabilities for fewer calls than completions have none: which call lacks them is not known", async () => {
    const value = trial([{ prompt_token_ids: [[1], [1, 2, 3]], completion_token_ids: [[2], [4]], logprobs: [[-1]] }]);
    const { report, turns } = await imported(value);
    expect(turns[0]!.map((turn) => turn.record.logprobs)).toEqual([null, null]);
    expect(turns[0]!.map((turn) => turn.record.defects)).toEqual([["logprobs_missing"], ["logprobs_missing"]]);
    expect(turns[0]!.map((turn) => turn.segment)).toEqual([1, 1]);
    expect(report.warnings.join()).toContain("log probabilities for 1 of 2 calls");
  });

  it("C6.47: a summarisation by another history is a segment of its own, not an error", async () => {
    const main = {
      prompt_token_ids: [
        [1, 2],
        [9, 9],
      ],
      completion_token_ids: [[3], [4]],
    };
    const { turns } = await imported(trial([main, { prompt_token_ids: [[1, 2, 3, 5]], completion_token_ids: [[6]] }]));
    expect(turns[0]!.map((turn) => [turn.segment, turn.record.decision.kind])).toEqual([
      [1, "new_segment"],
      [2, "new_segment"],
      [1, "append"],
    ]);
  });
});
