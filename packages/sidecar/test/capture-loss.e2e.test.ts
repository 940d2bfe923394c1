/** An engine that loses ids in its streams: told at once and at the seal, and asked for whole bodies before much is lost (O.105). */
import { cpSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { verifyTrajectory } from "@tito/format";
import { describe, expect, it } from "vitest";
import { engineSpeaking } from "./engine-shapes.js";
import { askIn, DIALECTS } from "./every-dialect.js";
import {
  engineTest,
  postChat,
  scriptedEngine,
  serverBefore,
  startTestSidecar,
  temporaryDir,
  turnsOf,
  user,
} from "./harness.js";
import { useBundle } from "./renderer-bundle.js";

const bundle = useBundle({ certified: false });
const RULES = [
  {
    match: { lastContains: "hello" },
    reply: { content: "Looking into it now.", tool_calls: [{ name: "bash", arguments: { command: "ls" } }] },
  },
];
/** What a tool parser swallows: all but the first token's ids, whenever tools are offered. */
const PARSER = { fault: { kind: "lost_ids", after: 1 }, times: 1000, on: { match: '"tools"' } };
const SWALLOWED = { fault: { kind: "lost_ids", after: 1 }, times: 1000 };

/** The engine without vLLM's token route, so that prompt ids go to the completions route, which streams. */
const streamingEngine = (engine: { url: string }) =>
  serverBefore(engine, (request, response) => {
    if (request.url !== "/inference/v1/generate") return false;
    response.writeHead(404).end();
    return true;
  });

/** The directory as a crash leaves it: nothing is sealed, and its writer is gone. */
function copyOf(out: string): string {
  const copy = temporaryDir();
  cpSync(out, copy, { recursive: true });
  writeFileSync(join(copy, "t1", "writer-0001.lock"), "999999999 1\n");
  return copy;
}

describe.each(DIALECTS)("streams that lose ids, in %s", (dialect) => {
  it.each(["engine", "bundle"])("rendered by the %s, are given up after the second (O.105)", async (renderer) => {
    const engine = await scriptedEngine(RULES);
    const options = renderer === "engine" ? {} : { renderer: bundle.dir };
    const started = await startTestSidecar(await streamingEngine(engine), options);
    await engineTest(engine, "faults", renderer === "engine" ? PARSER : SWALLOWED);
    for (let call = 0; call < 4; call++) {
      const response = await askIn(dialect, started, { stream: call !== 3, tools: true });
      expect(response.status).toBe(200);
      // A bundle reads the answer from its ids alone: of a damaged one the harness gets what was there.
      if (renderer === "engine" || call > 1) expect(await response.text()).toContain("bash");
      else await response.text();
    }
    await started.logged("capture_loss", 2);
    await started.logged("stream_fallback");
    const log = await started.sealed();
    await started.logged("sealed_with_loss");
    const turns = turnsOf(log).map(({ record }) => record);
    expect(turns.map(({ stream }) => stream)).toEqual(["live", "live", "synthetic", "none"]);
    expect(turns.map(({ stream_reason }) => stream_reason)).toEqual([
      undefined,
      undefined,
      "repeated_damage",
      "repeated_damage",
    ]);
    const [lost, , whole, body] = turns;
    expect(lost!.defects).toEqual(["completion_count_disagrees"]);
    expect(lost!.sampled_ids).toHaveLength(1);
    for (const turn of [whole!, body!]) {
      expect(turn.defects).toEqual([]);
      expect(turn.sampled_ids.length).toBe(lost!.usage.completion_tokens);
    }
    const verdict = verifyTrajectory(join(started.out, "t1"));
    expect(verdict.status).toBe("incomplete");
    expect(verdict.capture_loss).toMatchObject({ turns: 4, damaged_turns: 2, calls_without_ids: 0 });
    expect(verdict.capture_loss!.missing_tokens).toBe(2 * (lost!.usage.completion_tokens! - 1));
    expect(verdict.findings).toMatchObject([{ code: "lost_ids", message: expect.stringContaining("2 of 4 turns") }]);
  });
});

it("calls that get no ids at all count alike, and the third is whole (O.105)", async () => {
  const engine = await scriptedEngine(RULES);
  const started = await startTestSidecar(engine);
  await engineTest(engine, "faults", { ...PARSER, fault: { kind: "lost_ids", after: 0 } });
  const statuses = [];
  for (let call = 0; call < 3; call++) {
    const response = await askIn("messages", started, { stream: true, tools: true });
    statuses.push(response.status, (await response.text()).includes("no token ids"));
  }
  expect(statuses).toEqual([200, true, 200, true, 200, false]);
  const log = await started.sealed();
  expect(log.uncaptured).toHaveLength(2);
  expect(turnsOf(log).map(({ record }) => [record.stream, record.defects])).toEqual([["synthetic", []]]);
  const verdict = verifyTrajectory(join(started.out, "t1"));
  expect(verdict.capture_loss).toMatchObject({ calls_without_ids: 2, causes: { sampled_ids_missing: 2 } });
});

it("a harness that asked for the evidence itself keeps its stream (O.105)", async () => {
  const engine = await scriptedEngine(RULES);
  const started = await startTestSidecar(engine);
  await engineTest(engine, "faults", PARSER);
  for (let call = 0; call < 2; call++) await (await askIn("chat", started, { stream: true, tools: true })).text();
  const asked = { messages: [user("hello")], stream: true, logprobs: true };
  const response = await postChat(started, asked);
  expect(response.status).toBe(200);
  expect(await response.text()).toContain('"logprob"');
  expect(turnsOf(await started.sealed()).at(-1)!.record.stream).toBe("live");
});

it.each(["sglang", "fireworks"] as const)(
  "an engine that speaks as %s is asked for whole bodies too (O.105)",
  async (shape) => {
    const engine = await scriptedEngine(RULES);
    const shaped = await engineSpeaking(shape, engine);
    const started = await startTestSidecar(shaped);
    await engineTest(engine, "faults", PARSER);
    for (let call = 0; call < 3; call++) await (await askIn("chat", started, { stream: true, tools: true })).text();
    const turns = turnsOf(await started.sealed()).map(({ record }) => [record.stream, record.defects.length > 0]);
    expect(turns).toEqual([
      ["live", true],
      ["live", true],
      ["synthetic", false],
    ]);
  },
);

it("what an earlier process lost is in the seal of the next (O.105)", async () => {
  const engine = await scriptedEngine(RULES);
  const first = await startTestSidecar(engine);
  await engineTest(engine, "faults", { ...PARSER, times: 1 });
  await (await askIn("chat", first, { stream: true, tools: true })).text();
  const { key } = first;
  // It dies: nothing is sealed.
  const second = await startTestSidecar(engine, { out: copyOf(first.out), secrets: { apiKey: key } });
  await (await askIn("chat", second, { stream: true, tools: true })).text();
  const [report] = await second.sidecar.close("test");
  expect(report!.capture_loss).toMatchObject({ turns: 2, damaged_turns: 1 });
});

it.each([
  ["engine", [], "usage_lost"],
  ["engine", { include_usage: true, continuous_usage_stats: true }, "usage_lost"],
  ["bundle", [], "token_positions_disagree"],
] as const)(
  "a piece lost together with the counts, rendered by the %s, is damage (O.108)",
  async (renderer, options, defect) => {
    const engine = await scriptedEngine([
      { match: { lastContains: "hello" }, reply: { content: "one two three four" } },
    ]);
    const front = await streamingEngine(engine);
    const started = await startTestSidecar(front, renderer === "engine" ? {} : { renderer: bundle.dir });
    await engineTest(engine, "faults", { fault: { kind: "lost_chunk", token: 2, usage: false } });
    const asked = { messages: [user("hello")], stream: true };
    await (await postChat(started, Array.isArray(options) ? asked : { ...asked, stream_options: options })).text();
    const [turn] = turnsOf(await started.sealed());
    expect(turn!.record.defects).toContain(defect);
    expect(verifyTrajectory(join(started.out, "t1"))).toMatchObject({ status: "incomplete" });
  },
);
