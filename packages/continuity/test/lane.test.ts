import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Message } from "@tito/format";
import { describe, expect, it } from "vitest";
import {
  classifyLane,
  commit,
  createState,
  decide,
  detectHarness,
  HARNESS_RULES,
  type LaneInput,
  laneFacts,
} from "../src/index.js";
import { bareTurn } from "./bare-turn.js";

interface RecordedCall {
  scenario: string;
  call: number;
  path: string;
  headers: Record<string, string>;
  tools: number;
  max_tokens: number | null;
  messages: { role: Message["role"]; content: string | null; tool_calls?: string[]; tool_call_id?: string }[];
  lane: string;
}

/** Recorded requests of real harnesses, reduced to roles, ids, lengths and the leading words that matter. */
const folder = fileURLToPath(new URL("fixtures/harness/", import.meta.url));
const recorded = readdirSync(folder).map(
  (name) => JSON.parse(readFileSync(folder + name, "utf8")) as { harness: string; calls: RecordedCall[] },
);

function inputOf(call: RecordedCall): LaneInput {
  const messages = call.messages.map(
    ({ tool_calls, ...message }): Message => ({
      ...message,
      ...(tool_calls === undefined
        ? {}
        : { tool_calls: tool_calls.map((id) => ({ id, name: "tool", arguments: "{}" })) }),
    }),
  );
  const header = (name: string): string | undefined => call.headers[name];
  return { header, path: call.path, messages, tools: call.tools, max_tokens: call.max_tokens };
}

describe("every recorded call gets its lane", () => {
  for (const { harness, calls } of recorded) {
    it(`${harness}: ${calls.length} calls`, () => {
      const seen = calls.map((call) => {
        const input = inputOf(call);
        const named = HARNESS_RULES.some((rules) => rules.harness === harness) ? harness : null;
        return `${call.scenario}#${call.call} ${classifyLane(input, detectHarness(named, input.header)).lane}`;
      });
      expect(seen).toEqual(calls.map((call) => `${call.scenario}#${call.call} ${call.lane}`));
    });
  }

  it("opencode, codex and claude are recognised by their user agent alone", () => {
    for (const { harness, calls } of recorded.filter((one) => ["opencode", "codex", "claude"].includes(one.harness)))
      for (const call of calls) expect(detectHarness(null, (name) => call.headers[name])?.harness).toBe(harness);
  });
});

const plain = (messages: Message[], more: Partial<LaneInput> = {}): LaneInput => ({
  header: () => undefined,
  path: "/v1/chat/completions",
  messages,
  tools: 4,
  max_tokens: null,
  ...more,
});

describe("lanes without headers", () => {
  const system = (content: string): Message => ({ role: "system", content });
  const user = (content: string): Message => ({ role: "user", content });

  it("C6.40: a sub-agent is found by another system text and another first question, and keeps its lane by tool-call id", () => {
    const state = createState();
    const main = bareTurn("a", [1, 2], [3], { messages: [system("main"), user("do it")] });
    commit(state, main, decide(state, main), 1);
    const request = [system("You run one command"), user("count the lines")];
    const first = classifyLane(plain(request, laneFacts(state)), null);
    expect(first.lane).toMatch(/^sub:[0-9a-f]{8}$/);
    expect(first.evidence.rule).toBe("generic@1/prologue");
    const reply: Message = {
      role: "assistant",
      content: "",
      tool_calls: [{ id: "s1", name: "bash", arguments: "{}" }],
    };
    const sub = bareTurn("s", [7, 8], [9], { messages: request, reply, lane: first.lane });
    commit(state, sub, decide(state, sub), 2);
    const second = [...request.slice(1), reply, { role: "tool" as const, tool_call_id: "s1", content: "12" }];
    expect(classifyLane(plain(second, laneFacts(state)), null)).toMatchObject({
      lane: first.lane,
      evidence: { rule: "generic@1/tool_call_id" },
    });
  });

  it("a changed system text under the same question stays in the main lane", () => {
    const facts = { main: { system: "git status: clean", first_user: "do it" } };
    expect(classifyLane(plain([system("git status: ?? a.txt"), user("do it")], facts), null).lane).toBe("main");
  });

  it("a main call with a token limit of 1 is not a quota probe: it offers tools", () => {
    const claude = HARNESS_RULES.find((rules) => rules.harness === "claude")!;
    expect(classifyLane(plain([user("quota")], { max_tokens: 1, tools: 0 }), claude).lane).toBe("aux:quota");
    expect(classifyLane(plain([user("quota")], { max_tokens: 1 }), claude).lane).toBe("main");
  });

  it("token counts and titles of an unknown harness are auxiliary", () => {
    expect(classifyLane(plain([user("x")], { path: "/v1/messages/count_tokens?beta=true" }), null).lane).toBe(
      "aux:token_count",
    );
    expect(classifyLane(plain([user("Generate a title for: x")], { tools: 0 }), null).lane).toBe("aux:title");
  });

  it("a summary request that repeats the main line's tool calls is a compaction, not a main call", () => {
    const codex = HARNESS_RULES.find((rules) => rules.harness === "codex")!;
    const history: Message[] = [
      user("do it"),
      { role: "assistant", content: null, tool_calls: [{ id: "c1", name: "sh", arguments: "{}" }] },
      user("You are performing a CONTEXT CHECKPOINT COMPACTION. …"),
    ];
    const verdict = classifyLane(plain(history, { tools: 0, laneOfCall: () => "main" }), codex);
    expect(verdict).toMatchObject({ lane: "compaction", evidence: { rule: "codex@1/compaction_prompt" } });
  });
});
