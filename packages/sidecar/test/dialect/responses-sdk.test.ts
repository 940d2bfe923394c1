import { createOpenAI } from "@ai-sdk/openai";
import { generateText, jsonSchema, streamText, tool } from "ai";
import fc from "fast-check";
import OpenAI from "openai";
import { describe, expect, test } from "vitest";
import { responsesCodec } from "../../src/dialect/responses.js";
import {
  type Answer,
  anyAnswer,
  cutEvery,
  eventsOf,
  interleaveArguments,
  ODD_ARGUMENTS,
  serveCodec,
  USAGE,
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
const ask = { model: "policy", input: "hi", store: false } as const;

function answerOf(response: OpenAI.Responses.Response): Answer {
  const answer: Answer = { reasoning: "", content: "", calls: [], length: response.status === "incomplete" };
  for (const item of response.output) {
    if (item.type === "reasoning") answer.reasoning += (item.content ?? []).map((part) => part.text).join("");
    if (item.type === "message")
      answer.content += item.content.map((part) => ("text" in part ? part.text : "")).join("");
    if (item.type === "function_call")
      answer.calls.push({ id: item.call_id, name: item.name, arguments: item.arguments });
  }
  return answer;
}

describe("openai SDK, Responses", () => {
  test("a streamed answer arrives whole, and equals the answer that is not streamed", async () => {
    await using server = await serveCodec(responsesCodec, { events: eventsOf(full, cutEvery(3)) });
    const streamed = await client(server.url).responses.stream(ask).finalResponse();
    const whole = await client(server.url).responses.create(ask);
    expect(answerOf(streamed)).toEqual(full);
    expect(answerOf(whole)).toEqual(full);
    const bare = JSON.stringify(streamed.output, (key, value) => (key.startsWith("parsed") ? undefined : value));
    expect(JSON.parse(bare)).toEqual(whole.output);
    expect(streamed.id).toBe("resp_chatcmpl-1");
    expect(whole.output_text).toBe(full.content);
    expect(streamed.usage).toMatchObject({ input_tokens: 90, output_tokens: 12, total_tokens: 102 });
    expect(streamed.usage?.input_tokens_details.cached_tokens).toBe(USAGE.cachedTokens);
  });

  test("any answer, cut anywhere, is read back by the streaming parser", async () => {
    await fc.assert(
      fc.asyncProperty(anyAnswer, fc.integer({ min: 1, max: 9 }), async (answer, size) => {
        await using server = await serveCodec(responsesCodec, { events: eventsOf(answer, cutEvery(size)) });
        expect(answerOf(await client(server.url).responses.stream(ask).finalResponse())).toEqual(answer);
      }),
      { numRuns: 40 },
    );
  });

  test("arguments of parallel calls may come interleaved", async () => {
    const calls = ["x", "y", "z"].map((id) => ({ id, name: "bash", arguments: `{"${id}":"${id}${id}"}` }));
    const events = interleaveArguments(eventsOf({ ...full, calls }, cutEvery(2)));
    await using server = await serveCodec(responsesCodec, { events });
    const response = await client(server.url).responses.stream(ask).finalResponse();
    expect(answerOf(response).calls).toEqual(calls);
  });

  test("keepalives, also before the reply begins, disturb nothing", async () => {
    await using server = await serveCodec(responsesCodec, { events: eventsOf(full, cutEvery(50)), keepalives: true });
    const types: string[] = [];
    const stream = client(server.url).responses.stream(ask);
    stream.on("event", (event) => types.push(event.type));
    expect(answerOf(await stream.finalResponse())).toEqual(full);
    expect(types.filter((type) => type === "response.created")).toHaveLength(1);
    expect(types.filter((type) => type === "response.in_progress").length).toBeGreaterThan(2);
  });

  test("a failure after the 200 is thrown", async () => {
    const script = {
      events: eventsOf(full, cutEvery(3)).slice(0, 5),
      inStreamError: { kind: "unavailable", message: "the engine went away", retryable: true } as const,
    };
    await using server = await serveCodec(responsesCodec, script);
    await expect(client(server.url).responses.stream(ask).finalResponse()).rejects.toThrow(/engine went away/);
    const seen: string[] = [];
    const iterate = async () => {
      for await (const event of await client(server.url).responses.create({ ...ask, stream: true }))
        seen.push(event.type);
    };
    await expect(iterate()).rejects.toThrow(/engine went away/);
    expect(seen.at(-1)).toBe("response.failed");
  });

  test("HTTP errors carry type, code and whether to retry", async () => {
    const overflow = { kind: "context_overflow", message: "9 tokens over", retryable: false } as const;
    await using full400 = await serveCodec(responsesCodec, { events: [], httpError: overflow });
    await expect(client(full400.url).responses.create(ask)).rejects.toMatchObject({
      status: 400,
      code: "context_length_exceeded",
      type: "invalid_request_error",
      message: expect.stringContaining("exceeds the context window"),
    });
    expect(full400.attempts()).toBe(1);

    const degraded = { kind: "unavailable", message: "capture is degraded", retryable: false } as const;
    await using never = await serveCodec(responsesCodec, { events: [], httpError: degraded });
    await expect(client(never.url).responses.create(ask)).rejects.toMatchObject({ status: 503 });
    expect(never.attempts()).toBe(1);

    const busy = { kind: "overloaded", message: "busy", retryable: true, retryAfterS: 0 } as const;
    await using again = await serveCodec(responsesCodec, { events: [], httpError: busy });
    await expect(client(again.url).responses.create(ask)).rejects.toMatchObject({ status: 503 });
    expect(again.attempts()).toBe(3);
  });

  test("an answer sent back as input is the same turn again", async () => {
    await using server = await serveCodec(responsesCodec, { events: eventsOf(full, cutEvery(3)) });
    const openai = client(server.url);
    const first = await openai.responses.stream(ask).finalResponse();
    const outputs = full.calls.map((call) => ({
      type: "function_call_output" as const,
      call_id: call.id,
      output: `ran ${call.name}`,
    }));
    const input = [{ role: "user" as const, content: "hi" }, ...first.output, ...outputs];
    await openai.responses.create({ ...ask, input: input as OpenAI.Responses.ResponseInput });
    expect(server.requests.at(-1)?.messages).toEqual([
      { role: "user", content: "hi" },
      { role: "assistant", reasoning: full.reasoning, content: full.content, tool_calls: full.calls },
      { role: "tool", tool_call_id: "call_a", content: "ran bash" },
      { role: "tool", tool_call_id: "call_b", content: "ran read" },
    ]);
  });
});

describe("Vercel AI SDK, Responses", () => {
  const tools = {
    bash: tool({ inputSchema: jsonSchema<{ command: string }>({ type: "object" }), execute: async () => "ran" }),
    read: tool({ inputSchema: jsonSchema<object>({ type: "object" }), execute: async () => "ran" }),
  };
  const modelOf = (url: string) => createOpenAI({ baseURL: `${url}/v1`, apiKey: "dummy" })("policy");

  test("text, calls, reason and usage arrive, streamed and whole", async () => {
    await using server = await serveCodec(responsesCodec, { events: eventsOf(full, cutEvery(4)) });
    const model = modelOf(server.url);
    const streamed = streamText({ model, prompt: "hi", tools });
    await streamed.consumeStream();
    const whole = await generateText({ model, prompt: "hi", tools });
    for (const result of [await streamed.text, whole.text]) expect(result).toBe(full.content);
    for (const calls of [await streamed.toolCalls, whole.toolCalls]) {
      expect(calls.map((call) => [call.toolCallId, call.toolName])).toEqual([
        ["call_a", "bash"],
        ["call_b", "read"],
      ]);
    }
    expect(await streamed.finishReason).toBe("tool-calls");
    expect((await streamed.usage).inputTokens).toBe(90);
    expect(whole.finishReason).toBe("tool-calls");
  });

  test("its own echo of reasoning and calls is read as one turn", async () => {
    await using server = await serveCodec(responsesCodec, { events: eventsOf(full, cutEvery(4)) });
    const model = modelOf(server.url);
    const providerOptions = { openai: { store: false, include: ["reasoning.encrypted_content"] } };
    const first = await generateText({ model, prompt: "hi", tools, providerOptions });
    const messages = [{ role: "user" as const, content: "hi" }, ...first.response.messages];
    await generateText({ model, messages, tools, providerOptions });
    const assistant = server.requests.at(-1)?.messages.filter((message) => message.role === "assistant");
    expect(assistant).toHaveLength(1);
    expect(assistant?.[0]?.tool_calls?.map((call) => call.id)).toEqual(["call_a", "call_b"]);
    expect(assistant?.[0]?.content).toBe(full.content);
  });

  test("an error inside the stream surfaces as an error", async () => {
    const script = {
      events: eventsOf(full, cutEvery(3)).slice(0, 8),
      inStreamError: { kind: "internal", message: "the engine went away", retryable: false } as const,
    };
    await using server = await serveCodec(responsesCodec, script);
    const errors: unknown[] = [];
    const result = streamText({
      model: modelOf(server.url),
      prompt: "hi",
      onError: ({ error }) => void errors.push(error),
    });
    await result.consumeStream();
    expect(JSON.stringify(errors)).toContain("the engine went away");
  });
});
