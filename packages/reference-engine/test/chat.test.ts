import { describe, expect, it } from "vitest";
import { engines, post, streamed } from "./support/running.js";

const { start, script } = engines();
const TOOLS = [
  {
    type: "function",
    function: { name: "bash", parameters: { type: "object", properties: { command: { type: "string" } } } },
  },
];
const EVIDENCE = { logprobs: true, return_token_ids: true, return_tokens_as_token_ids: true };
const USER = [{ role: "user", content: "list the files" }];

describe("chat completions with a script", () => {
  it("gives reasoning, content and calls, with the ids and log probabilities that were sampled", async () => {
    const policy = script([
      {
        reply: {
          reasoning: "I look.",
          content: "On it.",
          tool_calls: [{ name: "bash", arguments: '{"command":  "ls"}' }],
        },
      },
    ]);
    const engine = await start({ policy });
    const { status, body } = await post(`${engine.url}/v1/chat/completions`, {
      model: "policy",
      messages: USER,
      tools: TOOLS,
      ...EVIDENCE,
    });
    expect(status).toBe(200);
    const [choice] = body.choices;
    expect(choice.message).toMatchObject({ role: "assistant", reasoning: "I look.", content: "On it." });
    expect(choice.message.tool_calls).toHaveLength(1);
    expect(choice.message.tool_calls[0].function).toEqual({ name: "bash", arguments: '{"command":  "ls"}' });
    expect(choice.message.tool_calls[0].id).toMatch(/^chatcmpl-tool-[0-9a-f]{24}$/);
    expect(choice.finish_reason).toBe("tool_calls");
    expect(choice.stop_reason).toBeNull();
    expect(choice.token_ids.length).toBe(body.usage.completion_tokens);
    expect(choice.logprobs.content.length).toBe(body.usage.completion_tokens);
    expect(choice.logprobs.content.map((entry: { token: string }) => entry.token)).toEqual(
      choice.token_ids.map((id: number) => `token_id:${id}`),
    );
    expect(body.prompt_token_ids.length).toBe(body.usage.prompt_tokens);
  });

  it("streams the same message and the same ids", async () => {
    const policy = script([
      {
        reply: {
          reasoning: "I look.",
          content: "On it.",
          tool_calls: [{ name: "bash", arguments: { command: "ls" } }],
        },
      },
    ]);
    const engine = await start({ policy });
    const request = { model: "policy", messages: USER, tools: TOOLS, seed: 1, ...EVIDENCE };
    const whole = await post(`${engine.url}/v1/chat/completions`, request);
    const events = await streamed(`${engine.url}/v1/chat/completions`, {
      ...request,
      stream_options: { include_usage: true },
    });
    expect(events.at(-1)).toBe("[DONE]");
    const chunks = events.slice(0, -1);
    expect(chunks[0].prompt_token_ids).toEqual(whole.body.prompt_token_ids);
    expect(chunks[0].choices[0].delta).toEqual({ role: "assistant", content: "" });
    expect(chunks.slice(1).some((chunk) => "prompt_token_ids" in chunk)).toBe(false);
    const ids = chunks.flatMap((chunk) => chunk.choices[0]?.token_ids ?? []);
    expect(ids).toEqual(whole.body.choices[0].token_ids);
    const deltas = chunks.map((chunk) => chunk.choices[0]?.delta ?? {});
    expect(deltas.map((delta) => delta.reasoning ?? "").join("")).toBe("I look.");
    expect(deltas.map((delta) => delta.content ?? "").join("")).toBe("On it.");
    const calls = deltas.flatMap((delta) => delta.tool_calls ?? []);
    expect(calls.map((call) => call.function.arguments).join("")).toBe('{"command": "ls"}');
    const last = chunks.at(-1);
    expect(last).toMatchObject({
      choices: [],
      usage: whole.body.usage.prompt_tokens_details === null ? expect.anything() : {},
    });
    expect(last.usage.completion_tokens).toBe(ids.length);
    expect(chunks.at(-2).choices[0]).toMatchObject({ finish_reason: "tool_calls", stop_reason: null });
  });

  it("reports usage with every chunk when asked to", async () => {
    const engine = await start({ policy: script([{ reply: { content: "a b c" } }]) });
    const options = { include_usage: true, continuous_usage_stats: true };
    const events = await streamed(`${engine.url}/v1/chat/completions`, { messages: USER, stream_options: options });
    const counts = events.slice(0, -1).map((event) => event.usage.completion_tokens);
    expect(counts).toEqual([...counts].sort((a, b) => a - b));
    expect([counts[0], counts.at(-1)]).toEqual([0, counts.length - 2]);
  });

  it("holds nothing back without evidence: one chunk for each piece of text, none for hidden tokens", async () => {
    const engine = await start({ policy: script([{ reply: { reasoning: "r", content: "é", split: "bytes" } }]) });
    const events = await streamed(`${engine.url}/v1/chat/completions`, { messages: USER });
    expect(events.slice(0, -1).map((event) => event.choices[0].delta)).toEqual([
      { role: "assistant", content: "" },
      { reasoning: "r" },
      { content: "é" },
      {},
    ]);
    const withIds = await streamed(`${engine.url}/v1/chat/completions`, { messages: USER, return_token_ids: true });
    expect(withIds.slice(1, -1).every((event) => event.choices[0].token_ids.length === 1)).toBe(true);
    expect(withIds.slice(1, -1).length).toBe(6);
  });

  it("answers n choices, each with its own role chunk and the prompt ids once", async () => {
    const engine = await start({ policy: script([{ replies: [{ content: "first" }, { content: "second" }] }]) });
    const request = { messages: USER, n: 2, return_token_ids: true };
    const events = (await streamed(`${engine.url}/v1/chat/completions`, request)).slice(0, -1);
    expect(events.filter((event) => "prompt_token_ids" in event)).toHaveLength(1);
    const texts = [0, 1].map((index) =>
      events
        .map((event) => event.choices[0])
        .filter((choice) => choice.index === index)
        .map((choice) => choice.delta.content ?? "")
        .join(""),
    );
    expect(texts).toEqual(["first", "second"]);
  });

  it("keeps the reason of an answer that was cut off after a call", async () => {
    const call = { name: "bash", arguments: "{}" };
    const engine = await start({ policy: script([{ reply: { tool_calls: [call, call], finish: "length" } }]) });
    const request = { messages: USER, tools: TOOLS };
    const { body } = await post(`${engine.url}/v1/chat/completions`, request);
    expect(body.choices[0]).toMatchObject({ finish_reason: "length", message: { content: null } });
    expect(body.choices[0].message.tool_calls).toHaveLength(2);
    const events = await streamed(`${engine.url}/v1/chat/completions`, request);
    expect(events.at(-2).choices[0].finish_reason).toBe("length");
  });
});
