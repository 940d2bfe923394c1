import { TitoError } from "@tito/format";
import { describe, expect, test } from "vitest";
import type { NeutralRequest, ReplyEvent } from "../../src/dialect/neutral.js";
import { responsesCodec } from "../../src/dialect/responses.js";
import { cutEvery, eventsOf, interleaveArguments } from "./codec-server.js";

const parse = (body: object): NeutralRequest => responsesCodec.parse(Buffer.from(JSON.stringify(body)));
const parseText = (body: string): NeutralRequest => responsesCodec.parse(Buffer.from(body));

function refusal(body: object): string {
  try {
    parse(body);
  } catch (error) {
    if (TitoError.is(error)) return `${error.code} ${error.message}`;
    throw error;
  }
  return "accepted";
}

/** Shape of what Codex 0.171 sends, shortened. */
const codex = {
  model: "policy",
  stream: true,
  input: [
    {
      type: "message",
      id: "msg_0",
      role: "developer",
      content: [{ type: "input_text", text: "You are a coding agent." }],
    },
    {
      type: "message",
      id: "msg_1",
      role: "developer",
      content: [
        { type: "input_text", text: "<skills>" },
        { type: "input_text", text: "<permissions>" },
      ],
    },
    { type: "message", id: "msg_2", role: "user", content: [{ type: "input_text", text: "<environment_context>" }] },
    { type: "message", id: "msg_3", role: "user", content: [{ type: "input_text", text: "say hi" }] },
  ],
  tools: [
    { type: "function", name: "exec_command", description: "Runs", strict: false, parameters: { type: "object" } },
    {
      type: "namespace",
      name: "agents",
      description: "Sub-agents",
      tools: [
        { type: "function", name: "spawn", description: "Spawns", strict: false, parameters: { type: "object" } },
      ],
    },
  ],
  tool_choice: "auto",
  parallel_tool_calls: true,
  reasoning: { summary: "auto" },
  store: false,
  include: ["reasoning.encrypted_content"],
  prompt_cache_key: "k",
  client_metadata: { turn_id: "t" },
};

describe("a Codex request", () => {
  test("leading developer messages become one system message; user messages stay apart", () => {
    expect(parse(codex).messages).toEqual([
      {
        role: "system",
        content: ["You are a coding agent.", "<skills>", "<permissions>"].map((text) => ({ type: "text", text })),
      },
      { role: "user", content: "<environment_context>" },
      { role: "user", content: "say hi" },
    ]);
  });

  test("tools of a namespace are offered under a joined name and called back under their own", () => {
    const request = parse(codex);
    expect(request.tools.map((tool) => tool.name)).toEqual(["exec_command", "agents__spawn"]);
    const reply = responsesCodec.reply(
      request,
      eventsOf(
        { reasoning: "", content: "", calls: [{ id: "c1", name: "agents__spawn", arguments: "{}" }], length: false },
        cutEvery(9),
      ),
    );
    const item = (JSON.parse(reply) as { output: Record<string, unknown>[] }).output[0]!;
    expect(item).toMatchObject({ type: "function_call", namespace: "agents", name: "spawn", call_id: "c1" });
    expect(parse({ ...codex, input: [item] }).messages[0]?.tool_calls?.[0]?.name).toBe("agents__spawn");
  });

  test("what has no effect is accepted and listed", () => {
    expect(parse(codex).ignored).toEqual(
      expect.arrayContaining(["parallel_tool_calls", "reasoning", "store", "prompt_cache_key", "client_metadata"]),
    );
    expect(parse({ ...codex, temperature: null, user: "u", text: { format: { type: "text" } } }).sampling).toEqual({});
  });

  test("C3: a tool schema keeps its spelling", () => {
    const schema = '{ "type":"object", "properties": {"10":{}, "2":{"maximum": 1e3}} }';
    const request = parseText(`{"input":"hi","tools":[{"type":"function","name":"f","parameters":${schema}}]}`);
    expect(request.tools[0]?.parameters).toBe(schema);
  });
});

describe("input items", () => {
  const call = (id: string, extra = {}) => ({
    type: "function_call",
    call_id: id,
    name: "f",
    arguments: "{not json",
    ...extra,
  });
  const output = (id: string) => ({ type: "function_call_output", call_id: id, output: "ok" });
  const shape = (input: object[]) =>
    parse({ input }).messages.map((message) => [
      message.role,
      message.reasoning ?? "",
      message.content ?? "",
      (message.tool_calls ?? []).map((one) => one.id).join(),
    ]);

  test("arguments that are no JSON are kept as they are", () => {
    expect(parse({ input: [call("a")] }).messages[0]?.tool_calls?.[0]?.arguments).toBe("{not json");
  });

  test("items without ids of ours form turns by their order", () => {
    const say = { type: "message", role: "assistant", content: [{ type: "output_text", text: "t" }] };
    const think = (text: string) => ({ type: "reasoning", summary: [{ type: "summary_text", text }] });
    expect(shape([think("r"), say, call("a"), call("b"), output("a"), output("b"), think("s"), call("c")])).toEqual([
      ["assistant", "r", "t", "a,b"],
      ["tool", "", "ok", ""],
      ["tool", "", "ok", ""],
      ["assistant", "s", "", "c"],
    ]);
  });

  test("a reasoning item of a stream that broke off stays a turn of its own", () => {
    const [dead, alive] = ["resp_1", "resp_2"].map((id) => {
      const events = eventsOf(
        { reasoning: id, content: "", calls: [{ id: "a", name: "f", arguments: "{}" }], length: false },
        cutEvery(9),
      );
      const start: ReplyEvent = { type: "start", id, createdS: 1, model: "policy" };
      return (
        JSON.parse(responsesCodec.reply(parse({ input: "x" }), [start, ...events.slice(1)])) as { output: object[] }
      ).output;
    });
    expect(shape([dead![0]!, ...alive!])).toEqual([
      ["assistant", "resp_1", "", ""],
      ["assistant", "resp_2", "", "a"],
    ]);
  });

  test("calls of one response stay one turn when their outputs stand between them", () => {
    const id = "fc_t0123456789abcdef_";
    expect(shape([call("a", { id: `${id}0` }), output("a"), call("b", { id: `${id}1` }), output("b")])).toEqual([
      ["assistant", "", "", "a,b"],
      ["tool", "", "ok", ""],
      ["tool", "", "ok", ""],
    ]);
  });

  test("reasoning comes back whole when the harness dropped its readable text, as Codex does", () => {
    const events = eventsOf({ reasoning: "trailing space ", content: "t", calls: [], length: false }, cutEvery(4));
    const { output: items } = JSON.parse(responsesCodec.reply(parse({ input: "x" }), events)) as { output: object[] };
    expect(shape([{ ...items[0], content: null }, items[1]!])).toEqual([["assistant", "trailing space ", "t", ""]]);
  });

  test("custom tools become functions of one string, and their calls come back as custom calls", () => {
    const tools = [{ type: "custom", name: "patch", description: "Applies" }];
    const request = parse({ input: "x", tools });
    expect(request.tools[0]?.parameters).toContain('"input"');
    const events = eventsOf(
      {
        reasoning: "",
        content: "",
        calls: [{ id: "c1", name: "patch", arguments: '{"input":"*** Begin\\n"}' }],
        length: false,
      },
      cutEvery(3),
    );
    const { output: items } = JSON.parse(responsesCodec.reply(request, events)) as {
      output: Record<string, unknown>[];
    };
    expect(items[0]).toMatchObject({ type: "custom_tool_call", call_id: "c1", name: "patch", input: "*** Begin\n" });
    const encoder = responsesCodec.stream(request);
    const text = events
      .flatMap((event) => encoder.encode(event))
      .map((frame) => frame.text)
      .join("");
    expect(text).toContain('"type":"response.custom_tool_call_input.delta"');
    expect(text).not.toContain("function_call_arguments");
    const echoed = parse({
      input: [items[0]!, { type: "custom_tool_call_output", call_id: "c1", output: "done" }],
      tools,
    });
    expect(echoed.messages).toEqual([
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "c1", name: "patch", arguments: '{"input":"*** Begin\\n"}' }],
      },
      { role: "tool", tool_call_id: "c1", content: "done" },
    ]);
  });
});

describe("refusals name the field", () => {
  test.each([
    [{ input: "x", previous_response_id: "resp_1" }, /^unsupported previous_response_id/],
    [{ input: "x", background: true }, /^unsupported background/],
    [{ input: "x", tool_choice: "required" }, /^bad_request tool_choice: .* no tool is offered/],
    [{ input: "x", tool_choice: { type: "function", name: "f" } }, /^bad_request tool_choice: no tool is called "f"/],
    [{ input: "x", tool_choice: { type: "web_search_preview" } }, /^unsupported tool_choice/],
    [{ input: "x", tool_choice: { type: "allowed_tools", mode: "required", tools: [] } }, /^unsupported tool_choice/],
    [{ input: "x", text: { format: { type: "json_schema" } } }, /^bad_request text.format.schema is missing/],
    [{ input: "x", text: { format: { type: "grammar" } } }, /^unsupported text.format.type/],
    [{ input: "x", tools: [{ type: "web_search" }] }, /^unsupported tools\[0\]: a tool of type web_search/],
    [
      { input: "x", tools: [{ type: "custom", name: "p", format: { type: "grammar" } }] },
      /^unsupported tools\[0\].format/,
    ],
    [{ input: "x", include: ["message.output_text.logprobs"] }, /^unsupported include\[0\]/],
    [
      { input: [{ role: "user", content: [{ type: "input_image", image_url: "data:" }] }] },
      /^unsupported input\[0\].content\[0\]: content of type input_image/,
    ],
    [{ input: [{ type: "item_reference", id: "x" }] }, /^unsupported input\[0\]: items are not stored here/],
    [{ input: [{ role: "robot", content: "x" }] }, /^bad_request input\[0\].role/],
    [{}, /^bad_request input is missing/],
    [{ input: "x", max_output_tokens: 0 }, /^bad_request max_output_tokens/],
  ])("%j", (body, expected) => {
    expect(refusal(body)).toMatch(expected);
  });

  test("null and harmless values are not refusals", () => {
    expect(refusal({ input: "x", previous_response_id: null, tool_choice: null, background: false, tools: null })).toBe(
      "accepted",
    );
  });
});

describe("what is held until the record is durable", () => {
  const heldFrom = (events: ReplyEvent[]) => {
    const encoder = responsesCodec.stream(parse({ input: "x" }));
    const frames = events.flatMap((event) => encoder.encode(event));
    const first = frames.findIndex((frame) => frame.held);
    expect(frames.slice(first).every((frame) => frame.held)).toBe(true);
    return [frames[first - 1]!, frames[first]!].map((frame) => /"type":"([^"]+)"/.exec(frame.text)?.[1]);
  };
  const calls = [
    { id: "a", name: "f", arguments: '{"x":1}' },
    { id: "b", name: "f", arguments: '{"y":2}' },
  ];

  test("everything from the first finished call on; reasoning and arguments are live", () => {
    const events = eventsOf({ reasoning: "r", content: "", calls, length: false }, cutEvery(3));
    expect(heldFrom(events)).toEqual(["response.function_call_arguments.done", "response.output_item.done"]);
    expect(heldFrom(interleaveArguments(events))).toEqual([
      "response.function_call_arguments.done",
      "response.output_item.done",
    ]);
  });

  test("everything from a finished message on", () => {
    const events = eventsOf({ reasoning: "r", content: "t", calls, length: false }, cutEvery(3));
    expect(heldFrom(events)).toEqual(["response.content_part.done", "response.output_item.done"]);
  });

  test("an empty answer holds its terminal event", () => {
    const events = eventsOf({ reasoning: "", content: "", calls: [], length: false }, cutEvery(3));
    expect(heldFrom(events)).toEqual(["response.in_progress", "response.completed"]);
  });
});
