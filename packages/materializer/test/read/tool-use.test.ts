/** A run whose tools are never called is told, loudly where its text looks like calls; no run is excluded for it. */
import { join } from "node:path";
import type { Message, ToolDefinition } from "@tito/format";
import { describe, expect, it } from "vitest";
import { inspectTrajectory } from "../../src/explain/inspect.js";
import { renderReport } from "../../src/explain/report.js";
import { materialize } from "../../src/jobs/materialize.js";
import { toolUseOf } from "../../src/read/tool-use.js";
import { temporaryDirectory } from "../temporary.js";
import { evidenceOf } from "../trajectories.js";
import { putFile, writeTrajectory } from "../written.js";

const root = temporaryDirectory();
const tools: ToolDefinition[] = [{ name: "read", parameters: "{}" }];
const called: Message = { role: "assistant", content: null, tool_calls: [{ id: "c1", name: "read", arguments: "{}" }] };
const text = (content: string): Message => ({ role: "assistant", content });

async function output(name: string, replies: readonly Message[]) {
  const dir = join(root, name, "task__1");
  putFile(join(dir, "reward.json"), { reward: 1 });
  const calls = replies.map((message, i) => ({ prompt: [1, 50 + i], sampled: [10 + i], tools, message }));
  const trajectory = await writeTrajectory(dir, { id: `t-${name}`, calls });
  return { trajectory, report: await materialize({ paths: [join(root, name)], out: join(root, `${name}.jsonl`) }) };
}

describe("tools that are never called", () => {
  it("C3.23: when the parser finds no call for a whole run, manifest, summary and inspection say so and that the text looks like calls", async () => {
    const reply = text('<tool_call>\n{"name": "read", "arguments": {}}\n</tool_call>');
    const { trajectory, report } = await output("wrong-parser", [reply, reply, text("done")]);
    expect(report.manifest.tool_use).toEqual({ offered_turns: 3, called_turns: 0, unparsed_turns: 2, silent_runs: 1 });
    const warning = report.manifest.warnings.find((each) => each.includes("no call was parsed"));
    expect(warning).toMatch(
      /offered tools in 3 calls .* in 2 the text looks like a call: .* parser may be the wrong one/,
    );
    expect(JSON.stringify(renderReport(report))).toContain("whose text looks like an unparsed call");
    expect(inspectTrajectory(trajectory).warning).toContain("parser may be the wrong one");
    expect(report.runs[0]!.excluded).toBeNull();
  });

  it("a silent run without anything like a call is told without blaming the parser", async () => {
    const { report } = await output("honest", [text("4"), text("5")]);
    expect(report.manifest.warnings).toEqual([
      "run honest/task__1 was offered tools in 2 calls and no call was parsed; the text does not look like calls",
    ]);
  });

  it("one parsed call is enough: nothing is told", async () => {
    const { trajectory, report } = await output("working", [called, text("done")]);
    expect(report.manifest.tool_use).toMatchObject({ offered_turns: 2, called_turns: 1, silent_runs: 0 });
    expect(report.manifest.warnings).toEqual([]);
    expect(inspectTrajectory(trajectory).warning).toBeNull();
  });

  it("knows how several families write a call, also inside the reasoning, and leaves auxiliary calls out", () => {
    const looks = (message: Message, lane: "main" | "aux:title" = "main") =>
      toolUseOf(evidenceOf([{ prompt: [1], sampled: [2], tools, message, lane }]).turns).unparsed_turns;
    for (const written of [
      "[TOOL_CALLS][{}]",
      "<function=read></function>",
      '<|python_tag|>{"name": "x"}',
      '{"name": "read", "arguments": {"path": "a"}}',
      "<｜tool▁calls▁begin｜>",
      '<invoke name="read">',
    ])
      expect(looks(text(written)), written).toBe(1);
    expect(looks({ role: "assistant", content: "", reasoning: "<tool_call>" })).toBe(1);
    expect(looks({ role: "assistant", content: [{ type: "text", text: "<tool_call>" }] })).toBe(1);
    expect(looks(text("I will call the read tool by name."))).toBe(0);
    expect(looks(text("<tool_call>"), "aux:title")).toBe(0);
  });
});
