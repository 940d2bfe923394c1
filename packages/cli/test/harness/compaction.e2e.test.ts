/** The context is full: each harness is told so in its own words, or sees it coming, and compacts. */
import { expect } from "vitest";
import { DONE, finalReply, shellCall, TASK } from "./scripts.js";
import { harnessTest, stage } from "./stage.js";

/** The engine's window for each harness: about two of the long tool results fit behind its first prompt. */
const WINDOWS = new Map([
  ["pi", 12_600],
  ["pi-new", 12_600],
  ["opencode", 19_500],
  ["codex", 29_500],
  ["claude-code", 31_000],
]);
const PARTS = 6;
/** OpenCode ends with 1 after an overflow, although it goes on. */
const EXIT_CODES = new Map([["opencode", 1]]);

for (const [harness, contextTokens] of WINDOWS) {
  harnessTest(harness, "a full context is compacted, and the task goes on in a new segment", async () => {
    const summary = { content: "SUMMARY-MARK: the list was printed." };
    const script = [
      { name: "title", match: { hasTools: false, contains: "title generator" }, reply: { content: "A title" } },
      { name: "summary", match: { hasTools: false }, reply: summary },
      { name: "summary with tools", match: { contains: "CRITICAL: Respond with TEXT ONLY" }, reply: summary },
      { name: "end", match: { contains: "SUMMARY-MARK" }, reply: finalReply(harness) },
      ...Array.from({ length: PARTS }, (_, part) => ({
        name: `print ${part}`,
        match: { contains: ["TITO-TASK", ...(part === 0 ? [] : [`part-${part - 1}-`])], excludes: `part-${part}-` },
        reply: {
          content: "Printing. ",
          tool_calls: [shellCall(harness, `for i in $(seq 300); do echo part-${part}-line-$i; done`)],
        },
      })),
    ];
    const { run, sealed } = await stage(harness, script, {
      engine: { maxModelLen: contextTokens },
      contextTokens,
      outputTokens: 500,
    });
    expect(await run(TASK)).toMatchObject({ exitCode: EXIT_CODES.get(harness) ?? 0, timedOut: false });
    const { lane, log } = await sealed();
    // In the record, not in the output: with -p, Pi 0.74 prints nothing after it has compacted.
    const last = lane("main").at(-1);
    expect(last?.message.content).toBe(DONE);
    expect(last?.decision.kind).toBe("new_segment");
    expect(lane("compaction").length).toBeGreaterThan(0);
    // What was refused for its length cost no token, and is nothing that is missing.
    for (const refused of log.uncaptured) expect(refused).toMatchObject({ status: 400, lost_tokens: false });
  });
}

/** Codex does not compact on an overflow error: a long tool result must never take it from below its limit to beyond the window. */
harnessTest("codex", "a long tool result in a small context is compacted in time: no turn overflows", async () => {
  const contextTokens = 29_500;
  const script = [
    { name: "summary", match: { hasTools: false }, reply: { content: "SUMMARY-MARK: the numbers were printed." } },
    { name: "end", match: { contains: "SUMMARY-MARK" }, reply: finalReply("codex") },
    ...Array.from({ length: PARTS }, (_, part) => ({
      name: `print ${part}`,
      match: { contains: ["TITO-TASK", ...(part === 0 ? [] : [`part-${part - 1}-`])], excludes: `part-${part}-` },
      // First to where Codex by its own limit would not compact yet, then one result too much.
      reply: {
        tool_calls: [
          shellCall("codex", `for i in $(seq ${part === 0 ? 300 : 20000}); do echo part-${part}-line-$i; done`),
        ],
      },
    })),
  ];
  const { run, sealed } = await stage("codex", script, {
    engine: { maxModelLen: contextTokens },
    contextTokens,
    outputTokens: 500,
  });
  expect(await run(TASK)).toMatchObject({ exitCode: 0, timedOut: false });
  const { lane, log } = await sealed();
  expect(lane("main").at(-1)?.message.content).toBe(DONE);
  expect(lane("compaction").length).toBeGreaterThan(0);
  // A summary of what is too long may be refused: Codex then shortens what it asks about, and asks again.
  for (const { call_id } of log.uncaptured)
    expect(log.intents.get(call_id)?.headers["x-codex-turn-metadata"]).toContain('"request_kind":"compaction"');
});
