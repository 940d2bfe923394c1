/** A call of no tool in an engine's reply: an answer like any other to the harness, and a malformed turn on record (O.104). */
import { describe, expect, it } from "vitest";
import { engineSpeaking } from "./engine-shapes.js";
import { askIn, CALLS } from "./every-dialect.js";
import { type Started, scriptedEngine, startTestSidecar, turnsOf } from "./harness.js";
import { useBundle } from "./renderer-bundle.js";

const bundle = useBundle({ certified: false });
const nameless = (name: string) => [
  {
    match: { lastContains: "hello" },
    reply: { content: "Looking.", tool_calls: [{ name, arguments: { command: "ls" } }] },
  },
];

async function isMalformed(started: Started): Promise<void> {
  const [turn] = turnsOf(await started.sealed());
  expect(turn!.record).toMatchObject({ malformed: true, defects: [] });
  expect(turn!.record.sampled_ids.length).toBeGreaterThan(0);
}

describe.each(["", " "])("a call of the tool %j", (name) => {
  it.each(CALLS)("in %s (stream: %s) is malformed where the engine parses (O.104)", async (dialect, stream) => {
    const started = await startTestSidecar(await scriptedEngine(nameless(name)));
    expect((await askIn(dialect, started, { stream, tools: true })).status).toBe(200);
    await isMalformed(started);
  });

  it.each(CALLS)("in %s (stream: %s) is malformed where a bundle parses (O.104)", async (dialect, stream) => {
    const started = await startTestSidecar(await scriptedEngine(nameless(name)), { renderer: bundle.dir });
    expect((await askIn(dialect, started, { stream, tools: true })).status).toBe(200);
    await isMalformed(started);
  });

  it.each(["sglang", "fireworks"] as const)("is malformed where %s parses (O.104)", async (shape) => {
    const shaped = await engineSpeaking(shape, await scriptedEngine(nameless(name)));
    const started = await startTestSidecar(shaped);
    expect((await askIn("chat", started, { stream: true, tools: true })).status).toBe(200);
    await isMalformed(started);
  });
});
