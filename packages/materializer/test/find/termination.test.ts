/** O.84: a rollout that nobody saw come to its own end did not complete. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { endingOf } from "../../src/find/termination.js";
import { materialize } from "../../src/jobs/materialize.js";
import type { TrajectoryEvidence } from "../../src/read/evidence.js";
import type { RolloutRun } from "../../src/write/rollout-run.js";
import { temporaryDirectory } from "../temporary.js";
import { type Call, evidenceOf } from "../trajectories.js";
import { harborResult, putFile, type TrajectorySpec, writeTrajectory } from "../written.js";

const nobody = { failure: null, finished: false };
const runner = { failure: null, finished: true };
const good: Call = { prompt: [1], sampled: [10] };
const asks: Call = { ...good, finish: "tool_calls" };
const end = (calls: readonly Call[], more: Partial<TrajectoryEvidence> = {}, word = nobody) =>
  endingOf([evidenceOf(calls, more)], word).termination;

describe("the last call of the policy", () => {
  const aborts: Call[] = [
    { ...good, finish: "abort" },
    { ...good, finish: "error" },
    ...["aborted", "aborted_by_seal", "stream_cut", "engine_error", "unparsed_chunk", "client_gone"].map((defect) => ({
      ...good,
      finish: "unknown" as const,
      defects: [defect],
    })),
  ];
  it.each(aborts)("cut short ($finish $defects) is interrupted, whoever else is content", (cut) => {
    for (const word of [nobody, runner]) {
      expect(end([cut], {}, word)).toBe("interrupted");
      expect(end([good, { ...cut, prompt: [1, 10, 2] }, { ...cut, prompt: [1, 10, 2] }], {}, word)).toBe("interrupted");
    }
    expect(end([cut, { ...good, prompt: [1, 2] }])).toBe("completed");
    expect(end([good, { ...cut, prompt: [5], lane: "aux:title" }])).toBe("completed");
  });

  it("without a known reason is interrupted while no runner says more", () => {
    const call: Call = { ...good, finish: "unknown" };
    expect([end([call]), end([call], {}, runner)]).toEqual(["interrupted", "completed"]);
  });

  it("that asked for tools, with a later call that got no answer, is interrupted; a final answer is not", () => {
    for (const last_uncaptured of [
      "engine_refused: 500",
      "client_gone",
      "aborted_by_seal",
      "refused_upstream_unavailable",
    ]) {
      expect(end([asks], { last_uncaptured }, runner)).toBe("interrupted");
      expect(end([good], { last_uncaptured }, runner)).toBe("completed");
    }
  });

  it.each([
    "context_overflow",
    "refused_context_overflow",
    "engine_refused: This model's maximum context length is 4096 tokens",
    "engine_refused: Input length (5000 tokens) exceeds the maximum allowed length (4096 tokens)",
  ])("refused for its length (%s) is context_overflow, also when it was the only one", (last_uncaptured) => {
    for (const calls of [[], [asks], [good]]) expect(end(calls, { last_uncaptured })).toBe("context_overflow");
    const [earlier, later] = [evidenceOf([good]), evidenceOf([], { last_uncaptured, ended_ms: 5000 })];
    expect(endingOf([later, earlier], nobody).termination).toBe("context_overflow");
  });

  it("missing altogether stays an incomplete capture", () => {
    expect(end([])).toBe("capture_incomplete");
    expect(end([], { last_uncaptured: "client_gone" })).toBe("capture_incomplete");
    expect(end([asks], { last_uncaptured: "context_overflow", incomplete: ["a gap"] })).toBe("capture_incomplete");
  });
});

describe("a trajectory that was killed and never sealed", () => {
  const killed: Partial<TrajectorySpec> = { unsealed: true };
  async function ending(spec: Partial<TrajectorySpec>, files: Record<string, unknown>) {
    const root = temporaryDirectory();
    for (const [file, content] of Object.entries(files)) putFile(join(root, "t__1", file), content);
    await writeTrajectory(join(root, "t__1"), { id: "x", calls: [good], ...spec });
    await materialize({ paths: [root], out: join(root, "out.jsonl") });
    const { termination, excluded } = JSON.parse(readFileSync(join(root, "out.jsonl"), "utf8")) as RolloutRun;
    return [termination, excluded];
  }

  it("is interrupted, with a reward file beside it too, and not excluded by default", async () => {
    expect(await ending(killed, {})).toEqual(["interrupted", null]);
    expect(await ending(killed, { "reward.txt": "1" })).toEqual(["interrupted", null]);
    expect(await ending({}, { "reward.txt": "1" })).toEqual(["completed", null]);
  });

  it("ended as the runner says, where one does", async () => {
    const result = (exception?: string) => ({
      "result.json": harborResult({ task: "t", name: "t__1", rewards: { reward: 1 }, ...(exception && { exception }) }),
    });
    expect(await ending(killed, result())).toEqual(["completed", null]);
    expect(await ending(killed, result("AgentTimeoutError"))).toEqual(["timeout", null]);
    expect(await ending(killed, result("ApiRateLimitError"))).toEqual(["env_error", "env_error"]);
  });

  it("counts only as the last of a run", () => {
    const [early, late] = [evidenceOf([good], { sealed: false }), evidenceOf([good], { ended_ms: 9000 })];
    expect(endingOf([early, late], nobody).termination).toBe("completed");
    expect(endingOf([early, { ...late, sealed: false }], nobody).termination).toBe("interrupted");
  });
});
