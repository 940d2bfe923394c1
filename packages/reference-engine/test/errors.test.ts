import { createServer } from "node:net";
import { TitoError } from "@tito/format";
import { describe, expect, it } from "vitest";
import { startEngine } from "../src/index.js";
import { engines, get, post } from "./support/running.js";

const { dir, start, script } = engines();
const USER = [{ role: "user", content: "hello" }];
const OVERFLOW = /maximum context length|context length is only|maximum model length/i;

describe("requests that cannot be answered", () => {
  it("overflow the context in vLLM's words", async () => {
    const engine = await start({ policy: script([{ reply: { content: "x" } }]), maxModelLen: 20 });
    const long = await post(`${engine.url}/v1/chat/completions`, {
      messages: [{ role: "user", content: "word ".repeat(30) }],
    });
    expect(long.status).toBe(400);
    expect(long.body.error).toMatchObject({ type: "BadRequestError", param: "input_tokens", code: 400 });
    expect(long.body.error.message).toMatch(OVERFLOW);
    expect(long.body.error.message).toMatch(
      /^This model's maximum context length is 20 tokens\. However, your request has \d+ input tokens/,
    );
    const wide = await post(`${engine.url}/v1/completions`, { prompt: "hi", max_tokens: 500 });
    expect(wide.status).toBe(400);
    expect(wide.body.error.message).toMatch(
      /maximum context length is 20 tokens\. However, you requested 500 output tokens and your prompt contains \d+ input tokens/,
    );
  });

  it("name a model that is not there", async () => {
    const engine = await start({ policy: script([{ reply: { content: "x" } }]) });
    const { status, body } = await post(`${engine.url}/v1/chat/completions`, { model: "other", messages: USER });
    expect(status).toBe(404);
    expect(body).toEqual({
      error: { message: "The model `other` does not exist.", type: "NotFoundError", param: "model", code: 404 },
    });
  });

  it("are malformed, or ask for what would be ignored", async () => {
    const engine = await start();
    const chat = `${engine.url}/v1/chat/completions`;
    const cases: [string, unknown, RegExp][] = [
      [chat, { messages: USER, temperature: -1 }, /temperature/],
      [chat, { messages: USER, logit_bias: { 5: 1 } }, /logit_bias is not supported/],
      [chat, { messages: USER, response_format: { type: "json_object" } }, /response_format is not supported/],
      [
        chat,
        { messages: USER, tools: [{ type: "function", function: { name: "f" } }], tool_choice: "required" },
        /tool_choice/,
      ],
      [chat, { messages: USER, top_logprobs: 3 }, /logprobs/],
      [chat, { messages: USER, stream: true, prompt_logprobs: 0 }, /not available when `stream=True`/],
      [chat, { messages: USER, stream_options: { include_usage: true } }, /stream=True/],
      [chat, { messages: "hello" }, /messages/],
      [chat, { messages: USER, stop: [""] }, /empty string/],
      [`${engine.url}/v1/completions`, { prompt: [] }, /empty/],
      [`${engine.url}/v1/completions`, { prompt: [1_000_000] }, /out of vocabulary/],
      [`${engine.url}/v1/completions`, { prompt: "x", echo: true }, /echo is not supported/],
      [`${engine.url}/v1/completions`, { prompt: "x", logprobs: 21 }, /max allowed: 20/],
      [`${engine.url}/inference/v1/generate`, { token_ids: [1], sampling_params: { bad_words: ["x"] } }, /bad_words/],
      [`${engine.url}/inference/v1/generate`, { token_ids: [1] }, /sampling_params/],
      [`${engine.url}/tokenize`, {}, /prompt or messages/],
    ];
    for (const [url, request, message] of cases) {
      const { status, body } = await post(url, request);
      expect([status, body.error?.type]).toEqual([400, "BadRequestError"]);
      expect(body.error.message).toMatch(message);
    }
    const broken = await fetch(chat, { method: "POST", body: "{", headers: { "content-type": "application/json" } });
    expect(broken.status).toBe(400);
    expect(await broken.json()).toMatchObject({ error: { type: "BadRequestError" } });
  });

  it("go where nothing is", async () => {
    const engine = await start({ testMode: false });
    expect((await get(`${engine.url}/v2`)).body).toEqual({ detail: "Not Found" });
    expect((await post(`${engine.url}/test/faults`, { fault: { kind: "empty_200" } })).status).toBe(404);
  });
});

describe("what the engine says about itself", () => {
  it("is what vLLM says", async () => {
    const engine = await start({ model: "tiny" });
    expect((await get(`${engine.url}/v1/models`)).body).toMatchObject({
      object: "list",
      data: [{ id: "tiny", object: "model", owned_by: "vllm", max_model_len: 512 }],
    });
    expect((await get(`${engine.url}/health`)).status).toBe(200);
    expect((await get(`${engine.url}/version`)).body.version).toMatch(/^\d+\.\d+\.\d+/);
    expect((await get(`${engine.url}/weight_info`)).body).toEqual({ weight_version: "default" });
  });
});

describe("an engine that cannot start says why in one line", () => {
  it.each([
    ["missing weights", { weights: "/nonexistent" }, "not_found", /cannot read .*config\.json/],
    ["a policy nobody knows", { policy: "oracle" }, "usage", /no policy is called "oracle"/],
    ["a missing script", { policy: "script:/nonexistent.json" }, "not_found", /cannot read the script/],
    ["a mode nobody knows", { logprobsMode: "cooked" as "raw" }, "usage", /no logprobs mode/],
    ["a port that is none", { port: 70_000 }, "usage", /--port is 70000/],
    ["a log that cannot be written", { logFile: "/nonexistent/log" }, "cannot_write", /cannot write the log/],
    [
      "an endpoint file that cannot be written",
      { endpointFile: "/nonexistent/e.json" },
      "cannot_write",
      /endpoint file/,
    ],
  ])("%s", async (_, options, code, message) => {
    const error = await startEngine({ weights: dir, ...options }).catch((reason: unknown) => reason);
    expect(TitoError.is(error) && error.code).toBe(code);
    expect((error as Error).message).toMatch(message);
    expect((error as Error).message).not.toContain("\n");
  });

  it("a taken port", async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    const { port } = other.address() as { port: number };
    const error = await startEngine({ weights: dir, port }).catch((reason: unknown) => reason);
    other.close();
    expect(TitoError.is(error) && error.code).toBe("address_in_use");
    expect((error as Error).message).toContain(`127.0.0.1:${port} is taken`);
  });
});
