import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, jsonSchema, streamText, tool } from "ai";
import fc from "fast-check";
import OpenAI from "openai";
import { describe, expect, test } from "vitest";
import { chat } from "../../src/dialect/chat.js";
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

const client = (url: string) => new OpenAI({ baseURL: `${url}/v1`, apiKey: "dummy" });
const ask = { model: "policy", messages: [{ role: "user" as const, content: "hi" }] };

function answerOf(completion: OpenAI.ChatCompletion): Omit<Answer, "reasoning"> {
  const choice = completion.choices[0]!;
  const calls = (choice.message.tool_calls ?? []).flatMap((call) =>
    call.type === "function" ? [{ id: call.id, name: call.function.name, arguments: call.function.arguments }] : [],
  );
  return { content: choice.message.content ?? "", calls, length: choice.finish_reason === "length" };
}

/** The openai SDK's stream helper keeps only the last reasoning delta, so reasoning is read from the chunks. */
function withoutReasoning({ content, calls, length }: Answer): Omit<Answer, "reasoning"> {
  return { content, calls, length };
}

describe("openai SDK, chat", () => {
  test("a streamed answer arrives whole, and equals the answer that is not streamed", async () => {
    await using server = await serveCodec(chat, { events: eventsOf(full, cutEvery(3)) });
    const streamed = await client(server.url)
      .chat.completions.stream({ ...ask, stream_options: { include_usage: true } })
      .finalChatCompletion();
    const whole = await client(server.url).chat.completions.create(ask);
    expect(answerOf(streamed)).toEqual(withoutReasoning(full));
    expect(answerOf(whole)).toEqual(withoutReasoning(full));
    expect(streamed.choices[0]?.finish_reason).toBe("tool_calls");
    for (const usage of [streamed.usage, whole.usage]) {
      expect(usage).toMatchObject({ prompt_tokens: 90, completion_tokens: 12, total_tokens: 102 });
      expect(usage?.prompt_tokens_details?.cached_tokens).toBe(40);
    }
    expect(whole.choices[0]?.message).toMatchObject({ reasoning_content: full.reasoning, refusal: null });
  });

  test("any answer, cut anywhere, is read back by the streaming parser", async () => {
    await fc.assert(
      fc.asyncProperty(anyAnswer, fc.integer({ min: 1, max: 9 }), fc.boolean(), async (answer, size, keepalives) => {
        await using server = await serveCodec(chat, { events: eventsOf(answer, cutEvery(size)), keepalives });
        let reasoning = "";
        const stream = client(server.url).chat.completions.stream(ask);
        stream.on("chunk", (chunk) => {
          const delta = chunk.choices[0]?.delta as { reasoning_content?: string } | undefined;
          reasoning += delta?.reasoning_content ?? "";
        });
        expect(answerOf(await stream.finalChatCompletion())).toEqual(withoutReasoning(answer));
        expect(reasoning).toBe(answer.reasoning);
      }),
      { numRuns: 40 },
    );
  });

  test("arguments of parallel calls may come interleaved", async () => {
    const calls = ["x", "y", "z"].map((id) => ({ id, name: "bash", arguments: `{"${id}":"${id}${id}"}` }));
    await using server = await serveCodec(chat, {
      events: interleaveArguments(eventsOf({ ...full, calls }, cutEvery(2))),
    });
    const completion = await client(server.url).chat.completions.stream(ask).finalChatCompletion();
    expect(answerOf(completion).calls).toEqual(calls);
  });

  test("usage is in the stream only when asked for", async () => {
    await using server = await serveCodec(chat, { events: eventsOf(full, cutEvery(30)) });
    const usages: unknown[] = [];
    for await (const chunk of await client(server.url).chat.completions.create({ ...ask, stream: true })) {
      expect(chunk.choices).toHaveLength(1);
      usages.push("usage" in chunk);
    }
    expect(usages).not.toContain(true);
  });

  test("a failure after the 200 is thrown", async () => {
    await using server = await serveCodec(chat, {
      events: eventsOf(full, cutEvery(3)).slice(0, 5),
      inStreamError: { kind: "unavailable", message: "the engine went away", retryable: true },
    });
    await expect(client(server.url).chat.completions.stream(ask).finalChatCompletion()).rejects.toThrow(
      /engine went away/,
    );
    expect(server.attempts()).toBe(1);
  });

  test("HTTP errors carry type, code and whether to retry", async () => {
    const overflow = { kind: "context_overflow", message: "maximum context length", retryable: false } as const;
    await using tooLong = await serveCodec(chat, { events: [], httpError: overflow });
    await expect(client(tooLong.url).chat.completions.create(ask)).rejects.toMatchObject({
      status: 400,
      code: "context_length_exceeded",
      type: "invalid_request_error",
    });
    expect(tooLong.attempts()).toBe(1);

    const degraded = { kind: "unavailable", message: "capture is degraded", retryable: false } as const;
    await using never = await serveCodec(chat, { events: [], httpError: degraded });
    await expect(client(never.url).chat.completions.create(ask)).rejects.toMatchObject({ status: 503 });
    expect(never.attempts()).toBe(1);

    const busy = { kind: "overloaded", message: "busy", retryable: true, retryAfterS: 0 } as const;
    await using again = await serveCodec(chat, { events: [], httpError: busy });
    await expect(client(again.url).chat.completions.create(ask)).rejects.toMatchObject({ status: 503 });
    expect(again.attempts()).toBe(3);
  });

  test("an answer sent back is the same turn again", async () => {
    await using server = await serveCodec(chat, { events: eventsOf(full, cutEvery(3)) });
    const openai = client(server.url);
    const first = await openai.chat.completions.create(ask);
    const results = full.calls.map((call) => ({
      role: "tool" as const,
      tool_call_id: call.id,
      content: `ran ${call.name}`,
    }));
    await openai.chat.completions.create({
      ...ask,
      messages: [...ask.messages, first.choices[0]!.message, ...results],
    });
    expect(server.requests.at(-1)?.messages).toEqual([
      { role: "user", content: "hi" },
      { role: "assistant", reasoning: full.reasoning, content: full.content, tool_calls: full.calls },
      { role: "tool", tool_call_id: "call_a", content: "ran bash" },
      { role: "tool", tool_call_id: "call_b", content: "ran read" },
    ]);
  });
});

describe("Vercel AI SDK, openai-compatible", () => {
  const tools = {
    bash: tool({ inputSchema: jsonSchema<{ command: string }>({ type: "object" }), execute: async () => "ran" }),
    read: tool({ inputSchema: jsonSchema<object>({ type: "object" }), execute: async () => "ran" }),
  };
  const modelOf = (url: string) =>
    createOpenAICompatible({ name: "tito", baseURL: `${url}/v1`, apiKey: "dummy", includeUsage: true })("policy");

  test("text, reasoning, calls, reason and usage arrive, streamed and whole", async () => {
    const answer = { ...full, calls: full.calls.map((call) => ({ ...call, arguments: call.arguments || "{}" })) };
    await using server = await serveCodec(chat, { events: eventsOf(answer, cutEvery(4)), keepalives: true });
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
    expect((await streamed.usage).inputTokens).toBe(90);
    expect(whole.usage.outputTokens).toBe(12);
  });

  test("an error inside the stream surfaces as an error", async () => {
    await using server = await serveCodec(chat, {
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
