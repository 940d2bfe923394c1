import { createAnthropic } from "@ai-sdk/anthropic";
import Anthropic from "@anthropic-ai/sdk";
import { generateText, jsonSchema, streamText, tool } from "ai";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { messagesCodec } from "../../src/dialect/messages.js";
import {
  type Answer,
  anyAnswer,
  cutEvery,
  eventsOf,
  interleaveArguments,
  ODD_ARGUMENTS,
  serveCodec,
} from "./codec-server.js";

const full: Answer = {
  reasoning: "Überlegen 🤔. ",
  content: "\n\nI'll create the file café.  \n",
  calls: [
    { id: "call_a", name: "bash", arguments: ODD_ARGUMENTS },
    { id: "call_b", name: "read", arguments: "" },
  ],
  length: false,
};

const client = (url: string) => new Anthropic({ baseURL: url, apiKey: "dummy" });
const ask = { model: "policy", max_tokens: 64, messages: [{ role: "user" as const, content: "hi" }] };

type Parsed = Omit<Answer, "calls"> & { calls: { id: string; name: string; input: unknown }[] };

function answerOf(message: Anthropic.Message): Parsed {
  const answer: Parsed = { reasoning: "", content: "", calls: [], length: message.stop_reason === "max_tokens" };
  for (const block of message.content) {
    if (block.type === "thinking") answer.reasoning += block.thinking;
    if (block.type === "text") answer.content += block.text;
    if (block.type === "tool_use") answer.calls.push({ id: block.id, name: block.name, input: block.input });
  }
  return answer;
}

function parsed(answer: Answer): Parsed {
  return {
    ...answer,
    calls: answer.calls.map(({ id, name, arguments: args }) => ({
      id,
      name,
      input: JSON.parse(args || "{}") as unknown,
    })),
  };
}

describe("Anthropic SDK", () => {
  test("a streamed answer arrives whole, and equals the answer that is not streamed", async () => {
    await using server = await serveCodec(messagesCodec, { events: eventsOf(full, cutEvery(3)) });
    const streamed = await client(server.url).messages.stream(ask).finalMessage();
    const whole = await client(server.url).messages.create(ask);
    expect(answerOf(streamed)).toEqual(parsed(full));
    expect(answerOf(whole)).toEqual(parsed(full));
    expect(streamed.content).toEqual(whole.content);
    expect(streamed.stop_reason).toBe("tool_use");
    expect(streamed.usage).toMatchObject({ input_tokens: 50, cache_read_input_tokens: 40, output_tokens: 12 });
    expect(whole.usage).toMatchObject({ input_tokens: 50, cache_read_input_tokens: 40, output_tokens: 12 });
  });

  test("any answer, cut anywhere, is read back by the streaming parser", async () => {
    await fc.assert(
      fc.asyncProperty(anyAnswer, fc.integer({ min: 1, max: 9 }), async (answer, size) => {
        await using server = await serveCodec(messagesCodec, { events: eventsOf(answer, cutEvery(size)) });
        expect(answerOf(await client(server.url).messages.stream(ask).finalMessage())).toEqual(parsed(answer));
      }),
      { numRuns: 40 },
    );
  });

  test("arguments of parallel calls may come interleaved", async () => {
    const calls = ["x", "y", "z"].map((name) => ({
      id: `call_${name}`,
      name: "bash",
      arguments: `{"${name}":"${name}${name}"}`,
    }));
    const events = interleaveArguments(eventsOf({ ...full, calls }, cutEvery(2)));
    await using server = await serveCodec(messagesCodec, { events });
    const message = await client(server.url).messages.stream(ask).finalMessage();
    expect(answerOf(message).calls.map((call) => call.input)).toEqual([{ x: "xx" }, { y: "yy" }, { z: "zz" }]);
  });

  test("arguments keep their spelling in a body that is not streamed", async () => {
    await using server = await serveCodec(messagesCodec, { events: eventsOf(full, cutEvery(3)) });
    const response = await fetch(`${server.url}/v1/messages`, { method: "POST", body: JSON.stringify(ask) });
    expect(await response.text()).toContain(`"input":${ODD_ARGUMENTS}}`);
  });

  test("pings, also before the reply begins, disturb nothing", async () => {
    await using server = await serveCodec(messagesCodec, { events: eventsOf(full, cutEvery(50)), keepalives: true });
    expect(answerOf(await client(server.url).messages.stream(ask).finalMessage())).toEqual(parsed(full));
  });

  test("a failure after the 200 is thrown", async () => {
    await using server = await serveCodec(messagesCodec, {
      events: eventsOf(full, cutEvery(3)).slice(0, 5),
      inStreamError: { kind: "overloaded", message: "the engine went away", retryable: true },
    });
    await expect(client(server.url).messages.stream(ask).finalMessage()).rejects.toThrow(
      /overloaded_error.*engine went away/s,
    );
  });

  test("HTTP errors carry type and whether to retry; overflow is worded as agents expect it", async () => {
    const overflow = {
      kind: "context_overflow",
      message: "too long",
      overflow: { promptTokens: 210_000, maxTokens: 200_000 },
      retryable: false,
    } as const;
    await using tooLong = await serveCodec(messagesCodec, { events: [], httpError: overflow });
    await expect(client(tooLong.url).messages.create(ask)).rejects.toMatchObject({
      status: 400,
      error: {
        error: { type: "invalid_request_error", message: "prompt is too long: 210000 tokens > 200000 maximum" },
      },
    });
    expect(tooLong.attempts()).toBe(1);
    const roomy = { ...overflow, overflow: { promptTokens: 20_000, maxTokens: 32_768, outputTokens: 64_000 } };
    await using tooMany = await serveCodec(messagesCodec, { events: [], httpError: roomy });
    await expect(client(tooMany.url).messages.create(ask)).rejects.toThrow(
      "input length and `max_tokens` exceed context limit: 20000 + 64000 > 32768, ",
    );
    const full = { ...overflow, overflow: { promptTokens: 32_000, maxTokens: 32_768, outputTokens: 8_192 } };
    await using noRoom = await serveCodec(messagesCodec, { events: [], httpError: full });
    await expect(client(noRoom.url).messages.create(ask)).rejects.toThrow(
      "prompt is too long: 32000 tokens > 32768 maximum",
    );

    const busy = { kind: "overloaded", message: "busy", retryable: true, retryAfterS: 0 } as const;
    await using again = await serveCodec(messagesCodec, { events: [], httpError: busy });
    await expect(client(again.url).messages.create(ask)).rejects.toMatchObject({ status: 529 });
    expect(again.attempts()).toBe(3);
  });

  test("an answer sent back is the same turn again, arguments in the SDK's spelling", async () => {
    await using server = await serveCodec(messagesCodec, { events: eventsOf(full, cutEvery(3)) });
    const anthropic = client(server.url);
    const first = await anthropic.messages.stream(ask).finalMessage();
    const results = full.calls.map((call) => ({
      type: "tool_result" as const,
      tool_use_id: call.id,
      content: `ran ${call.name}`,
    }));
    const messages: Anthropic.MessageParam[] = [
      ...ask.messages,
      { role: "assistant", content: first.content },
      { role: "user", content: [...results, { type: "text", text: "go on" }] },
    ];
    await anthropic.messages.create({ ...ask, messages });
    expect(server.requests.at(-1)?.messages).toEqual([
      { role: "user", content: "hi" },
      {
        role: "assistant",
        reasoning: full.reasoning,
        content: full.content,
        tool_calls: [
          { id: "call_a", name: "bash", arguments: JSON.stringify(JSON.parse(ODD_ARGUMENTS)) },
          { id: "call_b", name: "read", arguments: "{}" },
        ],
      },
      { role: "tool", tool_call_id: "call_a", content: "ran bash" },
      { role: "tool", tool_call_id: "call_b", content: "ran read" },
      { role: "user", content: "go on" },
    ]);
  });
});

describe("Vercel AI SDK, Messages", () => {
  const tools = {
    bash: tool({ inputSchema: jsonSchema<{ command: string }>({ type: "object" }), execute: async () => "ran" }),
    read: tool({ inputSchema: jsonSchema<object>({ type: "object" }), execute: async () => "ran" }),
  };
  const modelOf = (url: string) => createAnthropic({ baseURL: `${url}/v1`, apiKey: "dummy" })("policy");

  test("text, reasoning, calls, reason and usage arrive, streamed and whole", async () => {
    await using server = await serveCodec(messagesCodec, { events: eventsOf(full, cutEvery(4)) });
    const model = modelOf(server.url);
    const streamed = streamText({ model, prompt: "hi", tools });
    await streamed.consumeStream();
    const whole = await generateText({ model, prompt: "hi", tools });
    for (const text of [await streamed.text, whole.text]) expect(text).toBe(full.content);
    for (const text of [await streamed.reasoningText, whole.reasoningText]) expect(text).toBe(full.reasoning);
    for (const calls of [await streamed.toolCalls, whole.toolCalls]) {
      expect(calls.map((call) => call.toolCallId)).toEqual(["call_a", "call_b"]);
    }
    expect(await streamed.finishReason).toBe("tool-calls");
    expect((await streamed.usage).outputTokens).toBe(12);
    expect((await streamed.usage).inputTokens).toBe(90);
  });

  test("an error inside the stream surfaces as an error", async () => {
    await using server = await serveCodec(messagesCodec, {
      events: eventsOf(full, cutEvery(3)).slice(0, 8),
      inStreamError: { kind: "internal", message: "the engine went away", retryable: false },
    });
    const errors: unknown[] = [];
    const result = streamText({
      model: modelOf(server.url),
      prompt: "hi",
      onError: ({ error }) => void errors.push(error),
    });
    await result.consumeStream();
    expect(errors.map(String).join() + JSON.stringify(errors)).toContain("the engine went away");
  });
});
