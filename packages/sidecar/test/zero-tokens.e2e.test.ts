/** An answer without a single token is legitimate: it reaches the harness, and is a turn that trains nothing (O.103). */
import { describe, expect, it } from "vitest";
import { engineSpeaking, type Shape } from "./engine-shapes.js";
import { askIn, CALLS, DIALECTS } from "./every-dialect.js";
import { engineTest, postChat, type Started, scriptedEngine, startTestSidecar, turnsOf, user } from "./harness.js";
import { useBundle } from "./renderer-bundle.js";

const bundle = useBundle({ certified: false });
const RULES = [{ match: { lastContains: "hello" }, reply: { content: "one two three" } }];
const NOTHING = { fault: { kind: "no_tokens" } };

/** How each dialect says that its answer is whole. */
const WHOLE = {
  chat: /"finish_reason": ?"stop"/,
  responses: /"status": ?"completed"/,
  messages: /"stop_reason": ?"end_turn"/,
} as const;

/** A turn without a token, which is no checkpoint, in a trajectory to which nothing is missing. */
async function recorded(started: Started): Promise<void> {
  const log = await started.sealed();
  const [turn, ...others] = turnsOf(log);
  expect(others).toEqual([]);
  expect(turn).toMatchObject({ sampledIds: [], record: { defects: [], malformed: false, weight_versions: [] } });
  expect(turn!.promptIds.length).toBeGreaterThan(0);
  expect(turn!.record).toMatchObject({ finish_reason: "stop", usage: { completion_tokens: 0 } });
  expect(log.uncaptured).toEqual([]);
  expect(log.manifest).toMatchObject({ status: "complete", counts: { turns: 1, sampled_tokens: 0, lost_calls: 0 } });
}

describe.each(["engine", "bundle"])("an answer without a token, rendered by the %s", (renderer) => {
  it.each(CALLS)("is an answer in %s (stream: %s), and a turn (O.103)", async (dialect, stream) => {
    const engine = await scriptedEngine(RULES);
    const started = await startTestSidecar(engine, renderer === "engine" ? {} : { renderer: bundle.dir });
    await engineTest(engine, "faults", NOTHING);
    const response = await askIn(dialect, started, { stream });
    expect(response.status).toBe(200);
    expect(await response.text()).toMatch(WHOLE[dialect]);
    await recorded(started);
  });
});

describe.each(["sglang", "fireworks", "llamacpp"] satisfies Shape[])("an engine that speaks as %s", (shape) => {
  it.each(CALLS)("answers without a token in %s (stream: %s), with ids (O.103)", async (dialect, stream) => {
    const engine = await scriptedEngine(RULES);
    const shaped = await engineSpeaking(shape, engine);
    const started = await startTestSidecar(shaped, { renderer: bundle.dir });
    await engineTest(engine, "faults", NOTHING);
    const response = await askIn(dialect, started, { stream });
    expect(response.status).toBe(200);
    expect(await response.text()).toMatch(WHOLE[dialect]);
    await recorded(started);
  });

  it.skipIf(shape === "llamacpp").each(CALLS)(
    "answers without a token in %s (stream: %s), with messages (O.103)",
    async (dialect, stream) => {
      const engine = await scriptedEngine(RULES);
      const started = await startTestSidecar(await engineSpeaking(shape, engine));
      await engineTest(engine, "faults", NOTHING);
      const response = await askIn(dialect, started, { stream });
      expect(response.status).toBe(200);
      expect(await response.text()).toMatch(WHOLE[dialect]);
      await recorded(started);
    },
  );
});

it("an answer that its limit ended at once is told as cut short (O.103)", async () => {
  const engine = await scriptedEngine(RULES);
  const started = await startTestSidecar(engine);
  await engineTest(engine, "faults", { fault: { kind: "no_tokens", finish: "length" }, times: 3 });
  const words = { chat: '"finish_reason":"length"', responses: '"status":"incomplete"', messages: '"max_tokens"' };
  for (const dialect of DIALECTS) expect(await (await askIn(dialect, started)).text()).toContain(words[dialect]);
  const turns = turnsOf(await started.sealed());
  expect(turns.map(({ record }) => [record.finish_reason, record.sampled_ids.length])).toEqual(
    DIALECTS.map(() => ["length", 0]),
  );
});

it("a conversation goes on behind an answer without a token, from the checkpoint before it (O.103)", async () => {
  const engine = await scriptedEngine([...RULES, { match: { lastContains: "go on" }, reply: { content: "four" } }]);
  const started = await startTestSidecar(engine);
  const first = user("hello");
  const reply = { role: "assistant", content: "one two three" };
  await (await postChat(started, { messages: [first] })).text();
  await engineTest(engine, "faults", NOTHING);
  await (await postChat(started, { messages: [first, reply, user("go on")] })).text();
  const again = await postChat(started, {
    messages: [first, reply, user("go on"), { ...reply, content: "" }, user("go on")],
  });
  expect(await again.text()).toContain("four");
  const log = await started.sealed();
  const [whole, empty, last] = turnsOf(log);
  expect(empty!.sampledIds).toEqual([]);
  expect(empty!.record.decision).toMatchObject({
    kind: "append",
    evidence: { checkpoint_call_id: whole!.record.call_id },
  });
  expect(last!.record.decision).toMatchObject({
    kind: "branch",
    evidence: { checkpoint_call_id: whole!.record.call_id },
  });
});

it.each([
  ["text", { kind: "missing_ids" }, "sampled_ids_missing"],
  ["no prompt ids", { kind: "missing_prompt_ids" }, "prompt_ids_missing"],
])("an answer with %s and without ids is still lost, and withheld (O.103)", async (_words, fault, reason) => {
  const engine = await scriptedEngine(RULES);
  const started = await startTestSidecar(engine);
  await engineTest(engine, "faults", { fault });
  expect((await postChat(started, { messages: [user("hello")] })).status).toBe(503);
  const log = await started.sealed();
  expect(log.uncaptured).toMatchObject([{ reason, lost_tokens: true }]);
  expect(log.manifest?.status).toBe("incomplete");
});
