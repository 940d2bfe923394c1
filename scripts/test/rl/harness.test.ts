import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type RunningEngine, startEngine } from "@tito/reference-engine";
import { afterEach, describe, expect, it } from "vitest";
import { playPi } from "../../rl/harness/pi.js";
import { CALLS_MAX } from "../../rl/harness/rollout.js";
import { playToolLoop } from "../../rl/harness/tool-loop.js";
import { useTool } from "../../rl/harness/tools.js";

const HABITS = resolve(import.meta.dirname, "../../../fixtures/habits");
const dir = mkdtempSync(join(tmpdir(), "tito-rl-harness-"));
let engine: RunningEngine | null = null;
afterEach(async () => {
  await engine?.close();
  rmSync(dir, { recursive: true, force: true });
});

const call = (name: string, args: object) => ({ tool_calls: [{ name, arguments: args }] });
const SOLVED = [
  { match: { lastRole: "user" }, reply: { reasoning: "7+5=12", ...call("calc", { expression: "37+45" }) } },
  { match: { lastContains: "82" }, reply: call("save", { name: "answer.txt", text: "82" }) },
  { match: { lastContains: "saved" }, reply: { content: "The answer is 82." } },
];

async function play(harness: typeof playPi, script: unknown) {
  const file = join(mkdtempSync(join(tmpdir(), "tito-rl-script-")), "script.json");
  writeFileSync(file, JSON.stringify(script));
  engine = await startEngine({ weights: HABITS, policy: `script:${file}`, testMode: true });
  const files = new Map<string, string>();
  const transcript = await harness({
    baseUrl: `${engine.url}/v1`,
    apiKey: "any",
    prompt: "Save the sum in answer.txt: 37 45",
    directory: "/tmp/tito-001000/07",
    files,
    signal: new AbortController().signal,
  });
  const { entries } = (await (await fetch(`${engine.url}/test/log`)).json()) as { entries: unknown[] };
  return { transcript, files, calls: entries.length };
}

describe.each([
  ["Pi", playPi],
  ["the tool loop", playToolLoop],
])("%s", (_, harness) => {
  it("plays a rollout to its end and gives its own messages, reasoning and parsed arguments", async () => {
    const { transcript, files, calls } = await play(harness, SOLVED);
    expect(Object.fromEntries(files)).toEqual({ "answer.txt": "82" });
    expect(calls).toBe(3);
    expect(transcript.map(({ role }) => role)).toEqual([
      "system",
      "user",
      "assistant",
      "tool",
      "assistant",
      "tool",
      "assistant",
    ]);
    expect(transcript[0]!.content).toMatch(
      /^Solve with tools\.\nCurrent date: \d{4}-\d\d-\d\d\nCurrent working directory: \/tmp\/tito-001000\/07$/,
    );
    expect(transcript[2]).toMatchObject({
      reasoning: "7+5=12",
      toolCalls: [{ name: "calc", arguments: { expression: "37+45" } }],
    });
    expect(transcript.slice(3, 6).map(({ content }) => content)).toEqual(["82", null, "saved"]);
    expect(transcript[6]).toEqual({ role: "assistant", content: "The answer is 82.", reasoning: null, toolCalls: [] });
  });

  it("stops a policy that calls tools for ever", async () => {
    const { transcript } = await play(harness, { rules: [], unmatched: call("calc", { expression: "1+1" }) });
    expect(transcript.filter(({ role }) => role === "assistant")).toHaveLength(CALLS_MAX);
  });

  it("fails when the engine does, instead of giving half a conversation", async () => {
    const broken = [{ match: { hasTools: true }, fault: { kind: "status", status: 400 } }];
    await expect(play(harness, broken)).rejects.toThrow();
  });
});

describe("the tools", () => {
  it.each([
    ["calc", { expression: "37+45" }, "82"],
    ["calc", { expression: "37-45" }, "-8"],
    ["calc", { expression: "37*45" }, "error"],
    ["calc", {}, "error"],
    ["save", { name: "../x.txt", text: "1" }, "error"],
    ["save", { name: "a.txt", text: "x".repeat(201) }, "error"],
    ["rm", { name: "a.txt" }, "error"],
  ])("%s %j answers %s, as the demo's tools do", (name, args, answer) => {
    const files = new Map<string, string>();
    expect(useTool(name, args as Record<string, unknown>, files)).toBe(answer);
    expect(files.size).toBe(0);
  });
});
