import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  readTrajectory,
  rebuildBody,
  rebuildLines,
  TitoError,
  type TrajectoryLog,
  turnsInCommitOrder,
} from "@tito/format";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type ImportOptions, type ImportReport, importLog } from "../../src/index.js";
import { temporaryDir } from "../temporary.js";

interface Imported {
  report: ImportReport;
  out: string;
  log(trajectory: string): TrajectoryLog;
}

async function imported(lines: readonly unknown[], options: Partial<ImportOptions> = {}): Promise<Imported> {
  const dir = temporaryDir();
  const file = join(dir, "calls.jsonl");
  const text = lines.map((line) => (typeof line === "string" ? line : JSON.stringify(line))).join("\n");
  writeFileSync(file, text);
  const out = join(dir, "out");
  const report = await importLog({ logs: [file], out, durability: "write", ...options });
  return { report, out, log: (trajectory) => readTrajectory(join(out, trajectory), { mode: "strict" }) };
}

const call = (prompt: number[], sampled: number[], more: object = {}) => ({
  trajectory_id: "t",
  prompt_token_ids: prompt,
  completion_token_ids: sampled,
  logprobs: sampled.map(() => -0.5),
  finish_reason: "stop",
  ...more,
});

const decisions = (log: TrajectoryLog) =>
  turnsInCommitOrder(log).map(({ segment, record }) => [segment, record.decision.kind, record.decision.reason]);

async function refusal(lines: readonly unknown[], options: Partial<ImportOptions> = {}): Promise<TitoError> {
  const error = await imported(lines, options).then(
    () => null,
    (reason: unknown) => reason,
  );
  if (!TitoError.is(error)) throw new Error(`not refused: ${String(error)}`);
  return error;
}

describe("an imported log", () => {
  it("is decided as live calls are: a prompt that extends the tip appends, one that goes another way opens a segment", async () => {
    const { log } = await imported([
      call([1, 2], [3, 4]),
      call([1, 2, 3, 4, 5], [6]),
      call([1, 2, 3, 4, 9], [7]),
      call([1, 2, 3, 8], [7]),
      call([1, 2, 3, 4, 5, 6, 7], [8]),
    ]);
    expect(decisions(log("t"))).toEqual([
      [1, "new_segment", "first_turn"],
      [1, "append", "extends_tip"],
      [2, "branch", "sibling"],
      [3, "new_segment", "new_lineage"],
      [1, "append", "extends_tip"],
    ]);
  });

  it("holds each call's ids and log probabilities exactly, complete and sealed", async () => {
    const { log, report } = await imported([
      call([1, 2], [3], { logprobs: [-0.1] }),
      call([1, 2, 3, 4], [5, 6], { logprobs: [-0.5, -1e-30] }),
    ]);
    const trajectory = log("t");
    const lines = rebuildLines(trajectory);
    const turns = turnsInCommitOrder(trajectory);
    expect(turns.map((turn) => [...lines.promptIds(turn)])).toEqual([
      [1, 2],
      [1, 2, 3, 4],
    ]);
    expect(turns.map((turn) => [...turn.record.logprobs!])).toEqual([[-0.1], [-0.5, -1e-30]]);
    expect(report.trajectories).toMatchObject([
      { trajectory_id: "t", calls: 2, turns: 2, segments: 1, status: "complete" },
    ]);
  });

  it("of random interleaved conversations gives each turn the prompt that the log has", async () => {
    const id = fc.integer({ min: 0, max: 3 });
    const calls = fc.array(
      fc.record({
        trajectory_id: fc.constantFrom("x", "y"),
        prompt_token_ids: fc.array(id, { minLength: 1, maxLength: 8 }),
        completion_token_ids: fc.array(id, { minLength: 1, maxLength: 3 }),
      }),
      { minLength: 1, maxLength: 12 },
    );
    await fc.assert(
      fc.asyncProperty(calls, async (records) => {
        const { out } = await imported(records);
        for (const name of readdirSync(out)) {
          const log = readTrajectory(join(out, name), { mode: "strict" });
          const lines = rebuildLines(log);
          const found = turnsInCommitOrder(log).map((turn) => [
            [...lines.promptIds(turn)],
            [...turn.record.sampled_ids],
          ]);
          const own = records.filter((one) => one.trajectory_id === name);
          expect(found).toEqual(own.map((one) => [one.prompt_token_ids, one.completion_token_ids]));
        }
      }),
      { numRuns: 40 },
    );
  });

  it("may hold several trajectories, interleaved; an id that can be no directory name is kept as metadata", async () => {
    const { report, log } = await imported([
      call([1], [2], { trajectory_id: "a" }),
      call([1], [2], { trajectory_id: undefined, session_id: "../b c" }),
      call([1, 2, 3], [4], { trajectory_id: "a" }),
    ]);
    const [a, b] = report.trajectories;
    expect(a).toMatchObject({ trajectory_id: "a", turns: 2, segments: 1 });
    expect(b!.trajectory_id).toMatch(/^-b-c-[0-9a-f]{12}$/);
    expect(log(b!.trajectory_id).journals[0]!.header!.metadata).toEqual({ source_trajectory_id: "../b c" });
  });

  it("keeps what the log says beside the numbers, byte by byte, as the request body", async () => {
    const line =
      '{ "trajectory_id":"t", "prompt_token_ids": [1],"completion_token_ids":[2], "note": {"n": 1.50, "big": 12345678901234567890} }';
    const { log, report } = await imported([line]);
    const body = Buffer.from(rebuildBody(log("t"), "l1")).toString();
    expect(body).toBe('{ "trajectory_id":"t", "note": {"n": 1.50, "big": 12345678901234567890} }');
    expect(report.ignored).toEqual({ note: 1 });
  });

  it("C8.63: keeps no header that may hold a secret", async () => {
    const headers = { Authorization: "Bearer sk-canary", "User-Agent": "pi/1" };
    const { log } = await imported([call([1], [2], { headers })]);
    const intent = log("t").intents.get("l1")!;
    expect(intent.headers).toEqual({ "user-agent": "pi/1" });
    expect(Buffer.from(rebuildBody(log("t"), "l1")).toString()).not.toContain("sk-canary");
  });

  it("uses messages, tools and headers to explain, and times to know which calls were in flight together", async () => {
    const system = { role: "system", content: "s" };
    const user = { role: "user", content: "u" };
    const { log } = await imported([
      call([1, 2], [3], {
        messages: [system, user],
        message: { role: "assistant", content: "Done. " },
        received_ms: 1_700_000_000_000,
        finished_ms: 1_700_000_001_000,
      }),
      call([1, 2, 9], [4], {
        messages: [system, user, { role: "assistant", content: "Done." }, user],
        received_ms: 1_700_000_002_000,
        finished_ms: 1_700_000_003_000,
      }),
      call([1, 2, 3, 5], [6], { received_ms: 1_700_000_004, finished_ms: 1_700_000_009 }),
      call([1, 2, 3, 6], [6], { received_ms: 1_700_000_005, finished_ms: 1_700_000_009 }),
    ]);
    const turns = turnsInCommitOrder(log("t")).map((turn) => turn.record);
    expect(turns[1]!.decision).toMatchObject({ reason: "drift", evidence: { cause: "content_trimmed" } });
    expect(turns[3]!.decision).toMatchObject({ kind: "branch", reason: "parallel_call" });
    expect(turns[2]!.times).toMatchObject({ received_ms: 1_700_000_004_000, finished_ms: 1_700_000_009_000 });
  });

  it("says of answers only what the log says: delivered, failed, or nothing", async () => {
    const lines = [call([1], [2], { delivered: true }), call([3], [4], { delivered: false }), call([5], [6])];
    const outcomes = (log: TrajectoryLog) =>
      ["l1", "l2", "l3"].map((id) => log.deliveries.get(id)?.map((one) => [one.outcome, one.detail]) ?? null);
    const plain = await imported(lines);
    expect(outcomes(plain.log("t"))).toEqual([
      [["delivered", "told by the log"]],
      [["failed", "told by the log"]],
      null,
    ]);
    expect(plain.report.warnings.join()).toContain("1 answers are not said to have been delivered");
    const assumed = await imported(lines, { assumeDelivered: true });
    expect(outcomes(assumed.log("t"))[2]).toEqual([["delivered", "assumed on import"]]);
  });

  it("never touches a trajectory that is there", async () => {
    const { out } = await imported([call([1], [2])]);
    const before = readFileSync(join(out, "t", "manifest.json"));
    const error = await refusal([call([1], [2])], { out });
    expect(error).toMatchObject({ code: "already_exists" });
    expect(readFileSync(join(out, "t", "manifest.json"))).toEqual(before);
  });

  it("is refused in incremental mode, with the reason", async () => {
    const error = await refusal([call([1], [2])], { promptMode: "incremental" });
    expect(error).toMatchObject({ code: "usage", exitCode: 64 });
    expect(error.message).toContain("a prompt cannot be replaced after the fact");
  });
});

describe("evidence that is not whole", () => {
  const turnOf = async (record: object) => {
    const { log, report } = await imported([{ trajectory_id: "t", ...record }]);
    return { record: turnsInCommitOrder(log("t"))[0]?.record, log: log("t"), report };
  };

  it("C4.27: log probabilities that are missing, null or not finite are recorded as missing, never as 0", async () => {
    const none = await turnOf({ prompt_token_ids: [1], completion_token_ids: [2, 3] });
    expect(none.record).toMatchObject({ logprobs: null, defects: ["logprobs_missing"] });
    const line =
      '{"trajectory_id":"t","prompt_token_ids":[1],"completion_token_ids":[2,3,4,5],"logprobs":[null,NaN,-9999.0,-0.5]}';
    const { log } = await imported([line]);
    const { record } = turnsInCommitOrder(log("t"))[0]!;
    expect([...record.logprobs!]).toEqual([Number.NaN, Number.NaN, Number.NaN, -0.5]);
    expect(record.logprob_gaps).toEqual([
      { index: 0, was: "null" },
      { index: 1, was: "NaN" },
      { index: 2, was: "-9999" },
    ]);
  });

  it("C1.1, C4.30: counts that disagree are defects; nothing is padded, cut or zipped, and the turn is no checkpoint", async () => {
    const { record } = await turnOf({ prompt_token_ids: [1], completion_token_ids: [2, 3], logprobs: [-0.5] });
    expect(record).toMatchObject({ logprobs: null, defects: ["ids_logprobs_disagree"] });
    expect([...record!.sampled_ids]).toEqual([2, 3]);
    const usage = { prompt_tokens: 2, completion_tokens: 3 };
    const counted = await turnOf({ prompt_token_ids: [1], completion_token_ids: [2, 3], logprobs: [-0.5, -1], usage });
    expect(counted.record!.defects).toEqual(["completion_count_disagrees", "prompt_count_disagrees"]);
    const half = await turnOf({
      prompt_token_ids: [1],
      completion_token_ids: [2],
      logprobs: [-1],
      usage: { completion_tokens: 2 },
    });
    expect(half.record!.defects).toEqual(["completion_count_disagrees"]);
    const { log } = await imported([call([1], [2, 3], { logprobs: [-1] }), call([1, 2, 3, 4], [5])]);
    expect(decisions(log("t"))[1]).toEqual([2, "new_segment", "new_lineage"]);
  });

  it("a call without ids is recorded as one that lost its tokens, an engine's error as one that had none", async () => {
    const lost = await turnOf({ prompt_token_ids: [1], completion_token_ids: [] });
    expect(lost.log.uncaptured).toMatchObject([{ call_id: "l1", reason: "sampled_ids_missing", lost_tokens: true }]);
    expect(lost.report.trajectories[0]!.status).toBe("incomplete");
    const error = await turnOf({ response: { error: { message: "out of memory", code: 500 } } });
    expect(error.log.uncaptured).toMatchObject([
      { reason: "engine_error", lost_tokens: false, detail: "out of memory" },
    ]);
  });

  it("a call of which the log counts no sampled token is a turn without one; text or a failure contradicts it (O.103)", async () => {
    const usage = { prompt_tokens: 1, completion_tokens: 0 };
    const none = { prompt_token_ids: [1], completion_token_ids: [], usage };
    for (const more of [{}, { logprobs: [] }, { finish_reason: "stop" }, { finish_reason: "length" }, { text: "" }]) {
      const { record, log } = await turnOf({ ...none, ...more });
      expect(record).toMatchObject({ defects: [], weight_versions: [] });
      expect(record!.sampled_ids).toHaveLength(0);
      expect(log.uncaptured).toEqual([]);
      expect(log.manifest?.status).toBe("complete");
    }
    for (const more of [{ text: "hello" }, { finish_reason: "abort" }, { logprobs: [-1] }, { prompt_token_ids: [] }]) {
      const { record, log } = await turnOf({ ...none, ...more });
      expect(record).toBeUndefined();
      expect(log.uncaptured).toMatchObject([{ lost_tokens: true }]);
    }
  });

  it("ids that are none are a defect, not numbers that are made to fit", async () => {
    for (const wrong of [2.5, -1, 2 ** 31, "2", null]) {
      const { record, log } = await turnOf({
        prompt_token_ids: [1],
        completion_token_ids: [2, wrong],
        logprobs: [-1, -1],
      });
      expect(record).toBeUndefined();
      expect(log.uncaptured).toMatchObject([{ reason: "sampled_ids_missing", lost_tokens: true }]);
    }
  });

  it("a field that the log has not is no defect, one that says nothing is", async () => {
    const absent = await turnOf({ prompt_token_ids: [1], completion_token_ids: [2], logprobs: [-1] });
    expect(absent.record).toMatchObject({ finish_reason: "unknown", defects: [] });
    const empty = await turnOf({
      prompt_token_ids: [1],
      completion_token_ids: [2],
      logprobs: [-1],
      finish_reason: null,
    });
    expect(empty.record!.defects).toEqual(["finish_missing"]);
    const aborted = await turnOf({
      prompt_token_ids: [1],
      completion_token_ids: [2],
      logprobs: [-1],
      finish_reason: "abort",
    });
    expect(aborted.record).toMatchObject({ finish_reason: "abort", defects: ["aborted"] });
  });
});

describe("a damaged line", () => {
  it.each([
    ["a cut-off line", '{"trajectory_id":"t","prompt_token', "not JSON"],
    ["a line that is no object", "[1]", "not a JSON object"],
    ["a line of something else", '{"level":"info"}', "no record of a call"],
    ["two spellings that disagree", '{"prompt_ids":[1],"prompt_token_ids":[2],"token_ids":[3]}', "disagree"],
    ["messages that are none", '{"prompt_ids":[1],"token_ids":[2],"messages":[{"role":"x"}]}', "messages.0.role"],
    ["log probabilities of no known shape", '{"prompt_ids":[1],"token_ids":[2],"logprobs":"x"}', "logprobs is neither"],
    [
      "C12.81: an image",
      '{"prompt_ids":[1],"token_ids":[2],"messages":[{"role":"user","content":[{"type":"image_url"}]}]}',
      "only text can be captured",
    ],
  ])("%s is an error that names file and line, before anything is written", async (_, line, reason) => {
    const out = join(temporaryDir(), "out");
    const error = await refusal([call([1], [2]), line], { out });
    expect(error).toMatchObject({ code: "format_invalid", exitCode: 65 });
    expect(error.message).toMatch(/calls\.jsonl:2: /);
    expect(error.message).toContain(reason);
    expect(() => readdirSync(out)).toThrow(/ENOENT/);
  });

  it("is skipped on request: the trajectory that it names has a gap and is not complete", async () => {
    const { report, log } = await imported(
      [call([1], [2]), call([1], [2], { trajectory_id: "u" }), '{"trajectory_id":"t","prompt_token'],
      { skipBad: true },
    );
    expect(report.bad).toMatchObject([{ line: 3, trajectory_id: "t" }]);
    expect(report.trajectories.map((one) => [one.trajectory_id, one.gaps, one.status])).toEqual([
      ["t", 1, "degraded"],
      ["u", 0, "complete"],
    ]);
    expect(log("t").gaps).toMatchObject([{ reason: "recorded" }]);
  });

  it("that names no trajectory is a gap in all of its log, for it may have been a call of any", async () => {
    const lines = [call([1], [2]), call([1], [2], { trajectory_id: "u" }), '{"prompt_token_ids":[1'];
    const { report } = await imported(lines, { skipBad: true });
    expect(report.trajectories.map((one) => one.gaps)).toEqual([1, 1]);
  });

  it("alone is nothing to import, skipped or not", async () => {
    expect(await refusal(["{"], { skipBad: true })).toMatchObject({ code: "format_invalid" });
    expect(await refusal([""])).toMatchObject({ code: "format_invalid" });
  });

  it("is also one whose call id is there already", async () => {
    const error = await refusal([call([1], [2], { call_id: "c" }), call([1], [2], { call_id: "c" })]);
    expect(error.message).toContain("the call id c is there twice");
  });
});

describe("what a log does not tell", () => {
  const recorded = (log: TrajectoryLog) => turnsInCommitOrder(log).map(({ record }) => record);
  const usage = { prompt_tokens: 2, completion_tokens: 1 };

  it("of sampling is stated by the user, all of it or setting by setting, and a warning says what is missing (O.90)", async () => {
    const neutral = {
      temperature: 1,
      top_p: 1,
      top_k: -1,
      min_p: 0,
      repetition_penalty: 1,
      presence_penalty: 0,
      frequency_penalty: 0,
    };
    const untold = await imported([call([1, 2], [3], { sampling: { temperature: 1, top_p: 1 } })]);
    expect(untold.report.warnings.join()).toMatch(/1 calls do not state every sampling setting.*--sampling neutral/);
    const stated = await imported([call([1, 2], [3], { sampling: { temperature: 0.7 } })], { sampling: "neutral" });
    expect(recorded(stated.log("t"))[0]!.sampling).toEqual({ ...neutral, temperature: 0.7 });
    expect(stated.report.warnings.join()).not.toContain("sampling");
    const processed = await imported([call([1, 2], [3])], { logprobsMode: "processed" });
    expect(processed.report.warnings.join()).not.toContain("sampling");
  });

  it("of counts is damage where this engine counts in other lines, of this trajectory or another (O.91)", async () => {
    const { log } = await imported([
      call([1, 2], [3], { usage }),
      call([1, 2, 3, 4], [5]),
      call([7, 8], [9], { trajectory_id: "u" }),
    ]);
    expect(recorded(log("t")).map((record) => record.defects)).toEqual([[], ["usage_lost"]]);
    expect(recorded(log("u")).map((record) => record.defects)).toEqual([["usage_lost"]]);
    const never = await imported([call([1, 2], [3]), call([7], [9], { usage: {}, engine: "other" })]);
    expect(recorded(never.log("t")).flatMap((record) => record.defects)).toEqual([]);
    const other = await imported([call([1, 2], [3], { usage, engine: "a" }), call([7], [9], { engine: "b" })]);
    expect(recorded(other.log("t")).flatMap((record) => record.defects)).toEqual([]);
  });

  it.each(["cancelled", "", "content_filter", "error_unknown"])(
    "a finish reason of %j is a defect, and not none at all (O.93)",
    async (finish_reason) => {
      const { log } = await imported([call([1, 2], [3], { finish_reason })]);
      expect(recorded(log("t"))[0]).toMatchObject({ finish_reason: "unknown", defects: ["finish_unknown"] });
    },
  );

  it("of the end is no defect, and a warning (O.93)", async () => {
    const { log, report } = await imported([call([1, 2], [3], { finish_reason: undefined })]);
    expect(recorded(log("t"))[0]).toMatchObject({ finish_reason: "unknown", defects: [] });
    expect(report.warnings.join()).toContain("1 calls do not say why they ended");
  });

  it.each([0.5, "Infinity", 1e-4])("a log probability of %s is impossible (O.92)", async (value) => {
    const line = JSON.stringify(call([1, 2], [3, 4], { logprobs: [-0.5, "VALUE"] })).replace('"VALUE"', String(value));
    const { log } = await imported([line]);
    expect(recorded(log("t"))[0]!.defects).toContain("logprob_positive");
    expect(recorded(log("t"))[0]!.logprob_gaps).toEqual([{ index: 1, was: String(value) }]);
  });
});
