import { TitoError } from "@tito/format";
import { describe, expect, test } from "vitest";
import { countTokensReply, messagesCodec } from "../../src/dialect/messages.js";
import type { NeutralRequest, ReplyEvent } from "../../src/dialect/neutral.js";
import { cutEvery, eventsOf, interleaveArguments } from "./codec-server.js";

const parse = (body: object): NeutralRequest => messagesCodec.parse(Buffer.from(JSON.stringify(body)));
const hi = { role: "user", content: "hi" };

function refusal(body: object): string {
  try {
    parse(body);
  } catch (error) {
    if (TitoError.is(error)) return `${error.code} ${error.message}`;
    throw error;
  }
  return "accepted";
}

/** Shape of what Claude Code 2.1.332 sends, shortened. */
const claude = {
  model: "policy",
  messages: [
    {
      role: "user",
      content: [
        { type: "text", text: "<system-reminder>" },
        { type: "text", text: "say hi" },
      ],
    },
    { role: "system", content: [{ type: "text", text: "# Environment", cache_control: { type: "ephemeral" } }] },
  ],
  system: [
    { type: "text", text: "x-anthropic-billing-header: cc_version=2.1.332.0b8; cc_entrypoint=sdk-cli;" },
    { type: "text", text: "You are an agent.", cache_control: { type: "ephemeral" } },
  ],
  tools: [
    { name: "Bash", description: "Runs", input_schema: { type: "object" } },
    { name: "Later", description: "Deferred", input_schema: { type: "object" }, defer_loading: true },
  ],
  metadata: { user_id: "{}" },
  max_tokens: 32_000,
  thinking: { type: "adaptive", display: "omitted" },
  context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
  output_config: { effort: "high" },
  stream: true,
};

describe("a Claude Code request", () => {
  test("system blocks, also the billing header, come first; the system message inside the list stays where it is", () => {
    expect(parse(claude).messages).toEqual([
      {
        role: "system",
        content: [
          { type: "text", text: "x-anthropic-billing-header: cc_version=2.1.332.0b8; cc_entrypoint=sdk-cli;" },
          { type: "text", text: "You are an agent." },
        ],
      },
      {
        role: "user",
        content: [
          { type: "text", text: "<system-reminder>" },
          { type: "text", text: "say hi" },
        ],
      },
      { role: "system", content: "# Environment" },
    ]);
  });

  test("a message means the same as a string and as one text block, with a cache mark or without", () => {
    const forms = [
      "hi",
      [{ type: "text", text: "hi" }],
      [{ type: "text", text: "hi", cache_control: { type: "ephemeral" } }],
    ];
    for (const content of forms) expect(parse({ messages: [{ role: "user", content }] }).messages).toEqual([hi]);
  });

  test("a deferred tool is offered only where a tool result refers to it", () => {
    expect(parse(claude).tools.map((tool) => tool.name)).toEqual(["Bash"]);
    const result = {
      type: "tool_result",
      tool_use_id: "t1",
      content: [{ type: "tool_reference", tool_name: "Later" }],
    };
    const messages = parse({ ...claude, messages: [...claude.messages, { role: "user", content: [result] }] }).messages;
    expect(messages.at(-1)).toEqual({
      role: "tool",
      tool_call_id: "t1",
      content: '{"name": "Later", "description": "Deferred", "parameters": {"type":"object"}}',
    });
  });

  test("what has no effect is accepted and listed", () => {
    const request = parse(claude);
    expect(request.ignored).toEqual(expect.arrayContaining(["metadata", "thinking", "context_management"]));
    expect(request).toMatchObject({ stream: true, maxOutputTokens: 32_000, toolChoice: "auto", sampling: {} });
  });

  test("a count_tokens body needs no max_tokens", () => {
    expect(parse({ model: "policy", messages: [hi] }).maxOutputTokens).toBeNull();
    expect(countTokensReply(123)).toBe('{"input_tokens":123}');
  });

  test("sampling fields and stop sequences are read", () => {
    const request = parse({ messages: [hi], temperature: 0.5, top_k: 5, top_p: null, stop_sequences: ["END"] });
    expect(request.sampling).toEqual({ temperature: 0.5, top_k: 5 });
    expect(request.stop).toEqual(["END"]);
  });
});

describe("blocks", () => {
  test("tool results leave their user message in order; text around them stays user text", () => {
    const content = [
      { type: "tool_result", tool_use_id: "b", content: "2", is_error: true },
      { type: "tool_result", tool_use_id: "a", content: [{ type: "text", text: "1" }] },
      { type: "tool_result", tool_use_id: "c" },
      { type: "text", text: "go" },
      { type: "text", text: "on" },
    ];
    const request = parse({ messages: [{ role: "user", content }] });
    expect(request.messages).toEqual([
      { role: "tool", tool_call_id: "b", content: "2" },
      { role: "tool", tool_call_id: "a", content: "1" },
      { role: "tool", tool_call_id: "c", content: "" },
      {
        role: "user",
        content: [
          { type: "text", text: "go" },
          { type: "text", text: "on" },
        ],
      },
    ]);
    expect(request.ignored).toContain("tool_result.is_error");
  });

  test("C3: input keeps its spelling: numbers, key order, integer-like keys, escapes", () => {
    const input = '{"b": 12345678901234567890, "10":1e3, "2": 1.0,"a":"\\u00e9" }';
    const body = `{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":${input}}]},{"role":"user","content":"x"}]}`;
    expect(messagesCodec.parse(Buffer.from(body)).messages[0]?.tool_calls?.[0]?.arguments).toBe(input);
  });

  test("arguments that are no JSON object travel inside one and come back as they were sampled", () => {
    for (const args of ['{"cmd": "ls', "[1]", "null", "rm -rf"]) {
      const events = eventsOf(
        { reasoning: "", content: "", calls: [{ id: "t", name: "f", arguments: args }], length: false },
        cutEvery(4),
      );
      const { content } = JSON.parse(messagesCodec.reply(parse({ messages: [hi] }), events)) as { content: object[] };
      const echoed = parse({ messages: [hi, { role: "assistant", content }, hi] });
      expect(echoed.messages[1]?.tool_calls?.[0]?.arguments).toBe(args);
    }
  });

  test("thinking, text and calls are one assistant message", () => {
    const content = [
      { type: "thinking", thinking: "r ", signature: "s" },
      { type: "text", text: "a" },
      { type: "tool_use", id: "t", name: "f", input: {} },
    ];
    expect(parse({ messages: [{ role: "assistant", content }, hi] }).messages[0]).toEqual({
      role: "assistant",
      reasoning: "r ",
      content: "a",
      tool_calls: [{ id: "t", name: "f", arguments: "{}" }],
    });
  });
});

describe("refusals name the field", () => {
  const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "" } };
  test.each([
    [
      { messages: [{ role: "user", content: [image] }] },
      /^unsupported messages\[0\].content\[0\]: a block of type image/,
    ],
    [
      { messages: [{ role: "user", content: [{ type: "tool_result", tool_use_id: "t", content: [image] }] }] },
      /^unsupported messages\[0\].content\[0\].content\[0\]: content of type image/,
    ],
    [{ messages: [hi], tool_choice: { type: "any" } }, /^bad_request tool_choice: .* no tool is offered/],
    [
      { messages: [hi], tool_choice: { type: "tool", name: "f" } },
      /^bad_request tool_choice.name: no tool is called "f"/,
    ],
    [{ messages: [hi], tool_choice: { type: "other" } }, /^unsupported tool_choice/],
    [{ messages: [hi], tools: [{ type: "web_search_20250305", name: "web_search" }] }, /^unsupported tools\[0\]/],
    [
      { messages: [hi], output_config: { format: { type: "json_schema" } } },
      /^bad_request output_config.format.schema is missing/,
    ],
    [{ messages: [hi], output_config: { format: { type: "grammar" } } }, /^unsupported output_config.format.type/],
    [{ messages: [hi], mcp_servers: [{ url: "x" }] }, /^unsupported mcp_servers/],
    [
      { messages: [hi, { role: "assistant", content: "pre" }] },
      /^unsupported messages: the last message is the assistant's/,
    ],
    [
      { messages: [{ role: "assistant", content: [{ type: "redacted_thinking", data: "x" }] }, hi] },
      /^unsupported .*redacted_thinking/,
    ],
    [{ messages: [{ role: "robot", content: "x" }] }, /^bad_request messages\[0\].role/],
    [
      { messages: [{ role: "user", content: [{ type: "text" }] }] },
      /^bad_request messages\[0\].content\[0\].text is missing/,
    ],
  ])("%j", (body, expected) => {
    expect(refusal(body)).toMatch(expected);
  });
});

describe("what is held until the record is durable", () => {
  const framesOf = (events: ReplyEvent[]) => {
    const encoder = messagesCodec.stream(parse({ messages: [hi] }));
    return events.flatMap((event) => encoder.encode(event));
  };
  const heldFrom = (events: ReplyEvent[]) => {
    const frames = framesOf(events);
    const first = frames.findIndex((frame) => frame.held);
    expect(frames.slice(first).every((frame) => frame.held)).toBe(true);
    return frames[first]!.text;
  };
  const calls = [
    { id: "a", name: "f", arguments: '{"x":1}' },
    { id: "b", name: "f", arguments: '{"y":2}' },
  ];

  test("everything from the end of the first call on; its arguments are live", () => {
    const events = eventsOf({ reasoning: "r", content: "t", calls, length: false }, cutEvery(3));
    for (const order of [events, interleaveArguments(events)]) {
      expect(heldFrom(order)).toBe('event: content_block_stop\ndata: {"type":"content_block_stop","index":2}\n\n');
    }
    const live = framesOf(events.slice(0, 6)).map((frame) => frame.text);
    expect(live.join("")).toContain("input_json_delta");
  });

  test("without calls, message_delta and what follows", () => {
    expect(heldFrom(eventsOf({ reasoning: "r", content: "t", calls: [], length: false }, cutEvery(3)))).toMatch(
      /^event: message_delta/,
    );
  });

  test("stop reasons", () => {
    const finish = (reason: "stop" | "length" | "tool_calls", stopSequence: string | null): ReplyEvent[] => [
      { type: "start", id: "1", createdS: 1, model: "m" },
      {
        type: "finish",
        reason,
        stopSequence,
        usage: { promptTokens: 1, completionTokens: 1, cachedTokens: null, reasoningTokens: null },
      },
    ];
    const reasonOf = (events: ReplyEvent[]) =>
      /"stop_reason":"([a-z_]+)"/.exec(
        framesOf(events)
          .map((frame) => frame.text)
          .join(""),
      )?.[1];
    expect(reasonOf(finish("stop", null))).toBe("end_turn");
    expect(reasonOf(finish("stop", "END"))).toBe("stop_sequence");
    expect(reasonOf(finish("length", null))).toBe("max_tokens");
    expect(reasonOf(finish("tool_calls", null))).toBe("tool_use");
  });
});
