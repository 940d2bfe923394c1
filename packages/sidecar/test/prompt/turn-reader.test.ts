import type { Message } from "@tito/format";
import type { WholeTurn } from "@tito/renderer";
import { describe, expect, it } from "vitest";
import type { ReplyEvent } from "../../src/dialect/neutral.js";
import { TurnReader } from "../../src/prompt/turn-reader.js";
import { readEngineChunk } from "../../src/sample/engine-chunk.js";
import { Collector } from "../../src/sample/sampled.js";

const context = { promptTail: Int32Array.of(1), promptTokens: 1, tools: [] };
const LAST = 9;

/** Each id below `LAST` is a piece of text; what the whole turn parses to is given. */
function rendererOf(pieces: readonly { reasoning?: string; content?: string }[], message: Message) {
  const pushed: number[] = [];
  const state = { ended: 0 };
  const renderer = {
    stopIds: [LAST],
    decode: async (ids: Int32Array) =>
      Array.from(ids, (id) => (pieces[id]?.reasoning ?? "") + (pieces[id]?.content ?? "")).join(""),
    streamParser: () => ({
      push: async (ids: Int32Array) => {
        pushed.push(...ids);
        const all = Array.from(ids, (id) => pieces[id] ?? {});
        return {
          reasoning: all.map((one) => one.reasoning ?? "").join(""),
          content: all.map((one) => one.content ?? "").join(""),
        };
      },
      end: async (): Promise<WholeTurn> => {
        state.ended += 1;
        return { message, malformed: false, rest: { reasoning: "", content: "" } };
      },
    }),
  };
  return { renderer, state };
}

async function read(
  pieces: readonly { reasoning?: string; content?: string }[],
  message: Message,
  options: { stop?: string[]; toolChoice?: "auto" | "none"; stopReason?: string | number; finish?: string } = {},
) {
  const { stop = [], toolChoice = "auto", stopReason = null, finish = "stop" } = options;
  const { renderer } = rendererOf(pieces, message);
  const reader = new TurnReader(renderer, context, { stop, toolChoice });
  const collector = new Collector();
  const live: ReplyEvent[] = [];
  for (const id of [...pieces.keys(), ...(stopReason === null ? [LAST] : [])]) {
    const choice = { index: 0, text: "never looked at", token_ids: [id] };
    const chunk = readEngineChunk({ id: "cmpl-7", created: 5, model: "m", prompt_token_ids: [1], choices: [choice] });
    collector.add(chunk);
    live.push(...(await reader.read(chunk)));
  }
  const last = { index: 0, finish_reason: finish, stop_reason: stopReason };
  collector.add(readEngineChunk({ choices: [last], usage: { prompt_tokens: 1, completion_tokens: pieces.length } }));
  const end = await reader.end(collector.result());
  const text = (type: "reasoning" | "content", events: readonly ReplyEvent[]) =>
    events.map((event) => (event.type === type ? event.text : "")).join("");
  return {
    live,
    end,
    malformed: reader.malformed(),
    text: (type: "reasoning" | "content") => text(type, [...live, ...end]),
  };
}

describe("a reply read by its ids", () => {
  it("gives reasoning and content live, calls and finish at the end, under a chat id", async () => {
    const calls = [{ id: "call_1", name: "bash", arguments: "{}" }];
    const message: Message = { role: "assistant", reasoning: "why", content: "so", tool_calls: calls };
    const { live, end, malformed } = await read([{ reasoning: "why" }, { content: "so" }, {}], message);
    expect(live).toEqual([
      { type: "start", id: "chatcmpl-7", createdS: 5, model: "m", promptTokens: 1 },
      { type: "reasoning", text: "why" },
      { type: "content", text: "so" },
    ]);
    expect(end).toMatchObject([
      { type: "tool_call", index: 0, id: "call_1", name: "bash" },
      { type: "arguments", index: 0, text: "{}" },
      { type: "finish", reason: "tool_calls" },
    ]);
    expect(malformed).toBe(false);
  });

  it("holds what may be the start of a stop string, and cuts there", async () => {
    const pieces = [{ content: "one S" }, { content: "TO" }, { content: "P two" }];
    const options = { stop: ["STOP"], stopReason: "STOP" };
    const { live, end, text } = await read(pieces, { role: "assistant", content: "one STOP two" }, options);
    expect(live.filter(({ type }) => type === "content")).toEqual([{ type: "content", text: "one " }]);
    expect(text("content")).toBe("one ");
    expect(end.at(-1)).toMatchObject({ type: "finish", reason: "stop", stopSequence: "STOP" });
  });

  it("gives held text out when the turn ends otherwise", async () => {
    const { text } = await read(
      [{ content: "one STO" }],
      { role: "assistant", content: "one STO" },
      { stop: ["STOP"] },
    );
    expect(text("content")).toBe("one STO");
  });

  it("cuts reasoning that the stop string ended", async () => {
    const options = { stop: ["STOP"], stopReason: "STOP" };
    const message: Message = { role: "assistant", reasoning: "hm STOP", content: "" };
    const { text, malformed } = await read([{ reasoning: "hm " }, { reasoning: "STOP" }], message, options);
    expect([text("reasoning"), text("content"), malformed]).toEqual(["hm ", "", false]);
  });

  it("gives raw text, flagged, when the stop string broke a call", async () => {
    const calls = [{ id: "call_1", name: "bash", arguments: "{}" }];
    const pieces = [{ content: "a<call>" }, { content: "{}</call>" }];
    const options = { stop: ["</call>"], stopReason: "</call>" };
    const { text, end, malformed } = await read(
      pieces,
      { role: "assistant", content: "a", tool_calls: calls },
      options,
    );
    expect(text("content")).toBe("a<call>{}");
    expect(end.some(({ type }) => type === "tool_call")).toBe(false);
    expect(malformed).toBe(true);
  });

  it("gives calls as text to a harness that wants none", async () => {
    const calls = [{ id: "call_1", name: "bash", arguments: "{}" }];
    const message: Message = { role: "assistant", content: null, tool_calls: calls };
    const { end, malformed } = await read([{}, {}], message, { toolChoice: "none" });
    expect(end.map(({ type }) => type)).toEqual(["finish"]);
    expect(malformed).toBe(true);
  });

  it("frees the parser of a reply that is given up, once", async () => {
    const { renderer, state } = rendererOf([{ content: "a" }], { role: "assistant", content: "a" });
    const reader = new TurnReader(renderer, context, { stop: [], toolChoice: "auto" });
    reader.close();
    expect(state.ended).toBe(0);
    await reader.read(readEngineChunk({ choices: [{ index: 0, token_ids: [0] }] }));
    reader.close();
    reader.close();
    expect(state.ended).toBe(1);
  });
});
