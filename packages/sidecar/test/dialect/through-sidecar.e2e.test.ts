/** Responses and Messages over real sockets where something is refused, slow or broken: official SDKs in front, a real engine behind. */
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { describe, expect, it } from "vitest";
import { engineLog, engineTest, scriptedEngine, startTestSidecar, turnsOf } from "../harness.js";

const ANSWER = "Two files, café and thé.";
const RULES = [{ match: { contains: "hello" }, reply: { content: ANSWER } }];
const CHAT = { path: "/v1/chat/completions" };

async function start(engineOptions = {}) {
  const engine = await scriptedEngine(RULES, engineOptions);
  const started = await startTestSidecar(engine);
  const { endpoint } = started.sidecar;
  const openai = new OpenAI({ baseURL: endpoint.openai_base_url, apiKey: endpoint.api_key, maxRetries: 0 });
  const anthropic = new Anthropic({ baseURL: endpoint.anthropic_base_url, apiKey: endpoint.api_key, maxRetries: 0 });
  return { engine, openai, anthropic, ...started };
}

const response = (input: string) => ({ model: "policy", input, store: false });
const message = (content: Anthropic.MessageParam["content"]) => ({
  model: "policy",
  max_tokens: 200,
  messages: [{ role: "user" as const, content }],
});

describe("refusals cost no token", () => {
  it("what cannot be translated never reaches the engine", async () => {
    const { openai, anthropic, engine, sealed } = await start();
    const before = (await engineLog(engine)).length;
    const image = { type: "image" as const, source: { type: "url" as const, url: "https://example.com/a.png" } };
    await expect(
      openai.responses.create({ ...response("hello"), previous_response_id: "resp_1" }),
    ).rejects.toMatchObject({ status: 400, code: "unsupported" });
    await expect(openai.responses.create({ ...response("hello"), tool_choice: "required" })).rejects.toThrow(
      /tool_choice/,
    );
    await expect(anthropic.messages.create(message([image]))).rejects.toMatchObject({
      status: 400,
      error: { error: { type: "invalid_request_error", message: expect.stringContaining("image") } },
    });
    expect((await engineLog(engine)).length).toBe(before);
    expect(turnsOf(await sealed())).toEqual([]);
  });

  it("a prompt that is too long is refused in the words that make agents compact, also where a stream was asked for", async () => {
    const { openai, anthropic } = await start({ maxModelLen: 400 });
    const long = `hello ${"word ".repeat(600)}`;
    const overflow = { status: 400, code: "context_length_exceeded" };
    await expect(openai.responses.create(response(long))).rejects.toMatchObject(overflow);
    await expect(openai.responses.stream(response(long)).finalResponse()).rejects.toMatchObject(overflow);
    const words = /prompt is too long: \d+ tokens > 400 maximum/;
    await expect(anthropic.messages.create(message(long))).rejects.toThrow(words);
    await expect(anthropic.messages.stream(message(long)).finalMessage()).rejects.toThrow(words);
  });
});

describe("streams are live", () => {
  it("text arrives while the engine is held in mid-answer", async () => {
    const { engine, openai, anthropic } = await start();
    const hold = () => engineTest(engine, "faults", { on: CHAT, fault: { kind: "hang_after", tokens: 8 } });
    // The engine is let go only after the harness has seen a part of the answer.
    const letGo = async () => {
      await engineTest(engine, "wait", { gauge: "hanging", atLeast: 1 });
      await engineTest(engine, "release", {});
    };
    await hold();
    const deltas: string[] = [];
    for await (const event of await openai.responses.create({ ...response("hello"), stream: true })) {
      if (event.type !== "response.output_text.delta") continue;
      if (deltas.push(event.delta) === 1) await letGo();
    }
    expect(deltas.join("")).toBe(ANSWER);

    await hold();
    deltas.splice(0);
    for await (const event of await anthropic.messages.create({ ...message("hello again"), stream: true })) {
      if (event.type !== "content_block_delta" || event.delta.type !== "text_delta") continue;
      if (deltas.push(event.delta.text) === 1) await letGo();
    }
    expect(deltas.join("")).toBe(ANSWER);
  });
});

describe("a failure inside a stream", () => {
  it("is thrown by the SDK, and its words ask for another try", async () => {
    const { engine, openai, anthropic, sealed } = await start();
    await engineTest(engine, "faults", { on: CHAT, fault: { kind: "abort", afterTokens: 8 }, times: 2 });
    const words = /server error, try again/;
    await expect(openai.responses.stream(response("hello")).finalResponse()).rejects.toThrow(words);
    await expect(anthropic.messages.stream(message("hello")).finalMessage()).rejects.toThrow(words);
    expect(turnsOf(await sealed()).map((turn) => [turn.record.dialect, turn.record.defects])).toEqual([
      ["responses", ["aborted"]],
      ["messages", ["aborted"]],
    ]);
  });
});
