import { connect } from "node:net";
import OpenAI from "openai";
import { describe, expect, it } from "vitest";
import { engines, eventsOf, get, post } from "./support/running.js";

const { start, script } = engines();
const TOOLS = [
  {
    type: "function" as const,
    function: { name: "bash", parameters: { type: "object", properties: { command: { type: "string" } } } },
  },
];
const MESSAGES = [{ role: "user" as const, content: "list" }];
const CALLS = {
  reasoning: "Two at once.",
  content: "Sure. ",
  tool_calls: [
    { name: "bash", arguments: '{"command":  "caf\\u00e9"}' },
    { name: "bash", arguments: { command: "ls" } },
  ],
};

function client(url: string): OpenAI {
  return new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 });
}

describe("the official OpenAI client", () => {
  it("reads a whole reply with parallel tool calls", async () => {
    const engine = await start({ policy: script([{ reply: CALLS }]) });
    const reply = await client(engine.url).chat.completions.create({
      model: "policy",
      messages: MESSAGES,
      tools: TOOLS,
    });
    const [choice] = reply.choices;
    expect(choice?.finish_reason).toBe("tool_calls");
    expect(choice?.message.content).toBe("Sure. ");
    const calls = choice?.message.tool_calls?.flatMap((call) => (call.type === "function" ? [call.function] : []));
    expect(calls).toEqual([
      { name: "bash", arguments: '{"command":  "caf\\u00e9"}' },
      { name: "bash", arguments: '{"command": "ls"}' },
    ]);
    expect(new Set(choice?.message.tool_calls?.map(({ id }) => id)).size).toBe(2);
  });

  it("assembles the same from a stream", async () => {
    const engine = await start({ policy: script([{ reply: CALLS }]) });
    const stream = client(engine.url).chat.completions.stream({
      model: "policy",
      messages: MESSAGES,
      tools: TOOLS,
      stream_options: { include_usage: true },
    });
    const reply = await stream.finalChatCompletion();
    const [choice] = reply.choices;
    expect(choice?.finish_reason).toBe("tool_calls");
    expect(choice?.message.content).toBe("Sure. ");
    expect(
      choice?.message.tool_calls?.map((call) => (call.type === "function" ? call.function.arguments : "")),
    ).toEqual(['{"command":  "caf\\u00e9"}', '{"command": "ls"}']);
    expect(reply.usage?.completion_tokens).toBeGreaterThan(10);
  });

  it("gets errors with their message", async () => {
    const engine = await start({ policy: script([{ reply: CALLS }]) });
    const error = await client(engine.url)
      .chat.completions.create({ model: "other", messages: MESSAGES })
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(OpenAI.NotFoundError);
    expect((error as Error).message).toContain("The model `other` does not exist.");
  });
});

describe("several clients at once", () => {
  it("take turns: each stream advances while the others are under way", async () => {
    const engine = await start({ policy: script([{ reply: { content: "word ".repeat(60) } }]) });
    await post(`${engine.url}/test/faults`, { times: 3, fault: { kind: "hang_after", tokens: 2 } });
    const order: number[] = [];
    const streams = [0, 1, 2].map(async (who) => {
      const stream = await client(engine.url).chat.completions.create({
        model: "policy",
        messages: MESSAGES,
        stream: true,
      });
      for await (const _ of stream) order.push(who);
    });
    await post(`${engine.url}/test/wait`, { gauge: "hanging", atLeast: 3 });
    await post(`${engine.url}/test/release`, {});
    await Promise.all(streams);
    const firstEnd = Math.min(...[0, 1, 2].map((who) => order.lastIndexOf(who)));
    // Role chunk and two tokens came before the release.
    const seenByThen = [0, 1, 2].map((who) => order.slice(0, firstEnd).filter((other) => other === who).length);
    expect(Math.min(...seenByThen)).toBeGreaterThan(20);
  });
});

describe("a client that goes", () => {
  it.each([true, false])("ends the generation at once (stream: %s)", async (stream) => {
    const engine = await start({ policy: script([{ reply: { content: "word ".repeat(200) } }]) });
    await post(`${engine.url}/test/faults`, { fault: { kind: "hang_after", tokens: 5 } });
    const socket = connect(Number(new URL(engine.url).port), "127.0.0.1");
    const body = JSON.stringify({ messages: MESSAGES, stream });
    socket.write(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    await post(`${engine.url}/test/wait`, { gauge: "hanging", atLeast: 1 });
    socket.destroy();
    await post(`${engine.url}/test/wait`, { gauge: "aborted", atLeast: 1 });
    const { entries } = (await get(`${engine.url}/test/log`)).body;
    expect(entries).toHaveLength(1);
    expect(entries[0]).toMatchObject({ aborted: true, finish: null });
    expect(entries[0].sampled_ids).toHaveLength(5);
    expect((await get(`${engine.url}/test/state`)).body).toMatchObject({
      running: 0,
      hanging: 0,
      finished: 0,
      aborted: 1,
    });
  });

  it("while the engine waits between slow tokens too", async () => {
    const engine = await start({ policy: script([{ reply: { content: "word ".repeat(200), delayMs: 600_000 } }]) });
    const controller = new AbortController();
    const gone = fetch(`${engine.url}/v1/chat/completions`, {
      method: "POST",
      body: JSON.stringify({ messages: MESSAGES, stream: true }),
      headers: { "content-type": "application/json" },
      signal: controller.signal,
    });
    await (await gone).body?.getReader().read();
    controller.abort();
    await post(`${engine.url}/test/wait`, { gauge: "aborted", atLeast: 1 });
    expect((await get(`${engine.url}/test/log`)).body.entries[0].sampled_ids).toEqual([]);
  });

  it("sees earlier deltas before the answer is complete", async () => {
    const engine = await start({ policy: script([{ reply: { content: "one two three" } }]) });
    await post(`${engine.url}/test/faults`, { fault: { kind: "hang_after", tokens: 3 } });
    const response = await fetch(`${engine.url}/v1/chat/completions`, {
      method: "POST",
      body: JSON.stringify({ messages: MESSAGES, stream: true, return_token_ids: true }),
      headers: { "content-type": "application/json" },
    });
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    while (eventsOf(text).length < 4) text += (await reader?.read())?.value ?? "";
    expect(eventsOf(text).every((event) => event.choices[0].finish_reason === null)).toBe(true);
    expect((await post(`${engine.url}/test/release`, {})).body).toEqual({ released: 1 });
    for (let chunk = await reader?.read(); chunk?.done === false; chunk = await reader?.read()) text += chunk.value;
    expect(eventsOf(text).at(-1)).toBe("[DONE]");
  });
});
