import { describe, expect, it } from "vitest";
import { completeCallIds } from "../../src/dialect/call-ids.js";
import { codecOf } from "../../src/dialect/dialects.js";
import { assembleMessage } from "../../src/dialect/message.js";
import type { ReplyEvent } from "../../src/dialect/neutral.js";
import { chatReader } from "../../src/prompt/engine-source.js";
import { passthroughWriter } from "../../src/record/relay.js";
import { readEngineChunk } from "../../src/sample/engine-chunk.js";
import type { Sampled } from "../../src/sample/sampled.js";

type Delta = { index?: number; id?: string | null | undefined; name?: string | null; arguments?: string | null };

/** The events of a stream whose chunks hold these deltas, and the message they add up to. */
function read(deltas: Delta[][], name: string | null = null) {
  const reader = chatReader({ stop: [] }, name);
  const events = deltas.flatMap((calls) => {
    const tool_calls = calls.map(({ index, id, name, arguments: text }) => ({
      ...(index === undefined ? {} : { index }),
      id,
      function: { name, arguments: text },
    }));
    return reader.read(readEngineChunk({ id: "chatcmpl-7", choices: [{ index: 0, delta: { tool_calls } }] }));
  });
  const usage = { prompt: 1, completion: 1, cached: null, reasoning: null };
  const sampled = { promptIds: null, ids: [], defects: [], finish: "stop", stopReason: null, usage };
  events.push(...reader.end(sampled as unknown as Sampled));
  return { events, calls: assembleMessage(events).tool_calls };
}

const F = { id: "c1", name: "f", arguments: '{"a":1}' };
const G = { id: "c2", name: "g", arguments: '{"b":2}' };

describe("calls of one answer", () => {
  it.each<[string, Delta[][]]>([
    ["numbered", [[{ index: 0, ...F }], [{ index: 1, ...G }]]],
    ["numbered alike", [[{ index: 0, ...F }], [{ index: 0, ...G }]]],
    ["not numbered, in one chunk", [[F, G]]],
    [
      "that repeat their id and name with each piece",
      [
        [{ index: 0, ...F, arguments: '{"a"' }],
        [{ index: 0, ...F, arguments: ":1}" }],
        [{ index: 0, ...G, arguments: '{"b"' }],
        [{ index: 0, ...G, arguments: ":2}" }],
      ],
    ],
    [
      "interleaved",
      [
        [{ index: 0, ...F, arguments: "{" }],
        [{ index: 1, ...G, arguments: "{" }],
        [{ index: 0, arguments: '"a":1}' }],
        [{ index: 1, arguments: '"b":2}' }],
      ],
    ],
  ])("(%s) are told apart (O.13)", (_words, deltas) => {
    expect(read(deltas).calls).toEqual([F, G]);
  });

  it("without an id get one each, in every dialect, whole and streamed (O.13)", () => {
    for (const id of [null, undefined, ""]) {
      const { events, calls } = read([[{ index: 0, ...F, id }], [{ index: 1, ...G, id }]]);
      const ids = calls!.map((call) => call.id);
      expect(new Set(ids).size).toBe(2);
      for (const dialect of ["chat", "responses", "messages"] as const) {
        const codec = codecOf(dialect);
        const body = dialect === "responses" ? { input: "x" } : { messages: [{ role: "user", content: "x" }] };
        const request = codec.parse(Buffer.from(JSON.stringify(body)));
        const stream = codec.stream(request);
        const streamed = events.flatMap((event) => stream.encode(event).map((frame) => frame.text)).join("");
        for (const one of ids) {
          expect(one).toMatch(/^call_7_\d$/);
          expect(codec.reply(request, events)).toContain(`"${one}"`);
          expect(streamed).toContain(`"${one}"`);
        }
      }
    }
  });

  it("of which two have the same id stay two", () => {
    expect(read([[{ index: 0, ...F }], [{ index: 1, ...G, id: "c1" }]]).calls).toEqual([F, { ...G, id: "c1" }]);
  });

  it("of which two have the same id get two ids where the harness reads them (O.115)", () => {
    const twice: Delta[][] = [[{ index: 0, ...F }], [{ index: 1, ...G, id: "c1" }]];
    expect(read(twice, "live-3").calls).toEqual([F, { ...G, id: "call_live-3_1" }]);
  });

  it("have ids that no other answer has, also where the engine names every reply alike (O.115)", () => {
    const ids = ["a-1", "a-2"].map((name) => read([[{ index: 0, ...F, id: null }]], name).calls![0]!.id);
    expect(ids).toEqual(["call_a-1_0", "call_a-2_0"]);
  });

  it.each<[string, Delta[][]]>([
    ["whole, numbered alike", [[{ index: 0, ...F, id: null }], [{ index: 0, ...G, id: null }]]],
    ["whole, not numbered", [[{ ...F, id: "" }], [{ ...G, id: "" }]]],
    [
      "in pieces, numbered alike",
      [
        [{ index: 0, id: null, name: "f", arguments: "" }],
        [{ index: 0, id: null, name: "f", arguments: '{"a"' }],
        [{ index: 0, id: null, arguments: ":1}" }],
        [{ index: 0, id: null, name: "g", arguments: '{"b":2}' }],
      ],
    ],
  ])("without ids (%s) are told apart by their names (O.115)", (_words, deltas) => {
    const { calls } = read(deltas, "a-1");
    expect(calls).toEqual([
      { ...F, id: "call_a-1_0" },
      { ...G, id: "call_a-1_1" },
    ]);
  });

  it.each<[string, Delta[][]]>([
    [
      "a later chunk",
      [[{ index: 0, id: "c1" }], [{ index: 0, name: "f", arguments: '{"a":1}' }], [{ index: 1, ...G }]],
    ],
    [
      "a chunk behind its arguments",
      [[{ index: 0, id: "c1", name: "", arguments: '{"a":1}' }], [{ index: 0, name: "f" }], [{ index: 1, ...G }]],
    ],
    [
      "a chunk behind another call's",
      [
        [
          { index: 0, id: "c1", name: null },
          { index: 1, id: "c2", name: null, arguments: '{"b"' },
        ],
        [{ index: 1, name: "g", arguments: ":2}" }],
        [{ index: 0, name: "f", arguments: '{"a":1}' }],
      ],
    ],
    [
      "pieces that repeat it",
      [
        [{ index: 0, id: "c1" }],
        [{ index: 0, name: "f", arguments: '{"a"' }],
        [{ index: 0, name: "f", arguments: ":1}" }],
        [{ index: 1, ...G }],
      ],
    ],
  ])("whose name comes in %s have it in every dialect, from their first event on (O.180)", (_words, deltas) => {
    const { events, calls } = read(deltas);
    expect(calls).toEqual([F, G]);
    expect(events.flatMap((event) => (event.type === "tool_call" ? [event.name] : []))).toEqual(["f", "g"]);
    for (const text of inEveryDialect(events)) expect(text).not.toContain('"name":""');
  });

  it("without ids, whose names come behind whole arguments, are not torn apart (O.180)", () => {
    const { calls } = read([[{ index: 0, arguments: "{}" }], [{ index: 0, name: "f" }]], "a-1");
    expect(calls).toEqual([{ id: "call_a-1_0", name: "f", arguments: "{}" }]);
  });

  it("whose name never comes are told at the end, without one (O.180)", () => {
    const { events, calls } = read([[{ index: 0, id: "c1", arguments: "{}" }], [{ index: 1, ...G }]]);
    expect(calls).toEqual([{ id: "c1", name: "", arguments: "{}" }, G]);
    expect(events.at(-1)).toMatchObject({ type: "finish", reason: "tool_calls" });
  });

  it.each([null, 7, "f", []])("are none where the engine sends %j in place of one (O.183)", (junk) => {
    const tool_calls = [junk, { index: 0, id: null, function: { name: "f", arguments: "{}" } }];
    const json = { id: "x", choices: [{ index: 0, delta: { tool_calls } }] };
    const chunk = readEngineChunk(json);
    const reader = chatReader({ stop: [] }, "a-1");
    expect(assembleMessage(reader.read(chunk)).tool_calls).toEqual([{ id: "call_a-1_0", name: "f", arguments: "{}" }]);
    const writer = passthroughWriter({ logprobs: false, tokenIds: false, usage: false }, "a-1");
    const passed = JSON.parse(writer.chunk(JSON.stringify(json), chunk, [])[0]!.text.slice(6));
    expect(passed.choices[0].delta.tool_calls[1]).toMatchObject({ id: "call_a-1_0", index: 0 });
  });

  it("by the ten thousand are written in every dialect before the test times out: the work grows with their number (O.181)", () => {
    const many = Array.from({ length: 20_000 }, (_, index) => [{ index, ...F, id: `c${index}` }]);
    const { events, calls } = read(many);
    expect(calls).toHaveLength(many.length);
    for (const text of inEveryDialect(events)) expect(text.split('"c19999"').length).toBeGreaterThan(1);
    const results = calls!.map(({ id }) => ({ role: "tool" as const, content: "", tool_call_id: id }));
    const history = [{ role: "assistant" as const, content: "", tool_calls: calls! }, ...results];
    expect(completeCallIds(history)).toEqual(history);
  });
});

/** Each dialect's stream and whole reply. */
function inEveryDialect(events: ReplyEvent[]): string[] {
  return (["chat", "responses", "messages"] as const).flatMap((dialect) => {
    const codec = codecOf(dialect);
    const body = dialect === "responses" ? { input: "x" } : { messages: [{ role: "user", content: "x" }] };
    const request = codec.parse(Buffer.from(JSON.stringify(body)));
    const stream = codec.stream(request);
    const streamed = events.flatMap((event) => stream.encode(event).map((frame) => frame.text)).join("");
    return [streamed, codec.reply(request, events)];
  });
}
