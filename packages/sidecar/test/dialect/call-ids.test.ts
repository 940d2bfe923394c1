import type { Message } from "@tito/format";
import { describe, expect, it } from "vitest";
import { codecOf } from "../../src/dialect/dialects.js";
import type { NeutralRequest } from "../../src/dialect/neutral.js";

type Id = string | null | undefined;
const parse = (dialect: "chat" | "responses" | "messages", body: object): NeutralRequest =>
  codecOf(dialect).parse(Buffer.from(JSON.stringify(body)));

/** Two calls in one turn and their results, in a dialect's words. */
const BODIES: Record<"chat" | "responses" | "messages", (calls: Id[], results: Id[]) => object> = {
  chat: (calls, results) => ({
    messages: [
      { role: "user", content: "go" },
      {
        role: "assistant",
        content: null,
        tool_calls: calls.map((id, index) => ({
          id,
          type: "function",
          function: { name: `f${index}`, arguments: "{}" },
        })),
      },
      ...results.map((id, index) => ({ role: "tool", tool_call_id: id, content: `r${index}` })),
    ],
  }),
  responses: (calls, results) => ({
    input: [
      { role: "user", content: "go" },
      ...calls.map((id, index) => ({ type: "function_call", call_id: id, name: `f${index}`, arguments: "{}" })),
      ...results.map((id, index) => ({ type: "function_call_output", call_id: id, output: `r${index}` })),
    ],
  }),
  messages: (calls, results) => ({
    max_tokens: 9,
    messages: [
      { role: "user", content: "go" },
      {
        role: "assistant",
        content: calls.map((id, index) => ({ type: "tool_use", id, name: `f${index}`, input: {} })),
      },
      {
        role: "user",
        content: results.map((id, index) => ({ type: "tool_result", tool_use_id: id, content: `r${index}` })),
      },
    ],
  }),
};
const DIALECTS = ["chat", "responses", "messages"] as const;
const NONE: readonly Id[] = [null, undefined, ""];

/** Which result answers which call. */
function pairs({ messages }: NeutralRequest): string[] {
  const calls = messages.flatMap((message: Message) => message.tool_calls ?? []);
  expect(new Set(calls.map((call) => call.id)).size).toBe(calls.length);
  expect(calls.every((call) => call.id !== "")).toBe(true);
  return messages.flatMap((message) =>
    message.role === "tool"
      ? [`${calls.find((call) => call.id === message.tool_call_id)?.name} ${String(message.content)}`]
      : [],
  );
}

describe.each(DIALECTS)("calls and results of a %s request whose ids are missing or alike (O.115)", (dialect) => {
  const read = (calls: Id[], results: Id[]): string[] => pairs(parse(dialect, BODIES[dialect](calls, results)));

  it("are matched by their order", () => {
    for (const a of NONE) for (const b of NONE) expect(read([a, b], [b, a])).toEqual(["f0 r0", "f1 r1"]);
  });

  it("are matched by their ids where they have one, in any order, and the rest by order", () => {
    expect(read(["c1", "c2"], ["c2", "c1"])).toEqual(["f1 r0", "f0 r1"]);
    for (const none of NONE) {
      expect(read(["c1", "c2"], [none, "c1"])).toEqual(["f1 r0", "f0 r1"]);
      expect(read([none, "c2"], ["c2", none])).toEqual(["f1 r0", "f0 r1"]);
    }
  });

  it("are told apart where two are alike", () => {
    expect(read(["c1", "c1"], ["c1", "c1"])).toEqual(["f0 r0", "f1 r1"]);
    expect(read(["c1", "c1", null], ["c1", "c1", null])).toEqual(["f0 r0", "f1 r1", "f2 r2"]);
  });

  it("have the same ids each time the conversation comes, and ids that are given stay", () => {
    const twice = [0, 1].map(() => parse(dialect, BODIES[dialect]([null, "c2"], [null, "c2"])).messages);
    expect(twice[0]).toEqual(twice[1]);
    const [, assistant] = twice[0]!;
    expect(assistant!.tool_calls!.map((call) => call.id)).toEqual([expect.stringMatching(/^call_/), "c2"]);
  });

  it("refuse an id that is no text, with the field's name", () => {
    const field = dialect === "messages" ? /id/ : dialect === "chat" ? /tool_calls\.0\.id/ : /call_id/;
    expect(() => read([7 as never], [])).toThrow(
      expect.objectContaining({ code: "bad_request", message: expect.stringMatching(field) }),
    );
  });
});

it("a chat body gets the ids that it lacks, and keeps every other byte (O.115)", () => {
  const head = '{ "messages" : [ {"role":"user","content":"\\u0067o"}, {"role":"assistant","tool_calls":[';
  const call = (id: string): string => `{${id} "type":"function","function":{"name":"f","arguments":"{ }"}}`;
  const tail = '],"x": 1.0}, {"role":"tool","content":"1", "tool_call_id": null} ] , "seed": 1e3 }';
  const text = `${head}${call('"id":"c1",')} , ${call('"id": null ,')}${tail}`;
  const { chatBody, messages } = codecOf("chat").parse(Buffer.from(text));
  expect(chatBody!.text).toBe(
    text.replace('"id": null', '"id": "call_1_1"').replace('"tool_call_id": null', '"tool_call_id": "c1"'),
  );
  expect(messages[1]!.tool_calls!.map(({ id }) => id)).toEqual(["c1", "call_1_1"]);
  const whole = text.replace("null", '"c2"').replace("null", '"c1"');
  expect(codecOf("chat").parse(Buffer.from(whole)).chatBody!.text).toBe(whole);
});

describe("a tool without a name (O.119)", () => {
  it.each([
    ["chat", { tools: [{ type: "function", function: { name: "" } }] }, "tools.0.function.name: must not be empty"],
    ["responses", { tools: [{ type: "function", name: "" }] }, "tools[0].name must not be empty"],
    ["responses", { tools: [{ type: "custom", name: "" }] }, "tools[0].name must not be empty"],
    ["responses", { tools: [{ type: "namespace", name: "", tools: [] }] }, "tools[0].name must not be empty"],
    [
      "responses",
      { tools: [{ type: "namespace", name: "n", tools: [{ type: "function", name: "" }] }] },
      "name must not be empty",
    ],
    ["messages", { tools: [{ name: "", input_schema: {} }] }, "tools[0].name must not be empty"],
  ] as const)("is not offered (%s %j)", (dialect, more, message) => {
    expect(() => parse(dialect, { ...BODIES[dialect]([], []), ...more })).toThrow(
      expect.objectContaining({ code: "bad_request", message: expect.stringContaining(message) }),
    );
  });

  it.each(DIALECTS)("that a policy called is read where a %s harness sends its call back", (dialect) => {
    const body = JSON.stringify(BODIES[dialect](["c1"], ["c1"])).replaceAll('"f0"', '""');
    const { messages } = codecOf(dialect).parse(Buffer.from(body));
    expect(messages.flatMap((message) => message.tool_calls ?? [])).toMatchObject([{ id: "c1", name: "" }]);
  });
});
