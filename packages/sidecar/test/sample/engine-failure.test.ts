import { describe, expect, it } from "vitest";
import { messagesError } from "../../src/dialect/messages-error.js";
import { roomLeft } from "../../src/prompt/room.js";
import { readEngineChunk } from "../../src/sample/engine-chunk.js";
import { classify, dialectError, readFailure, withCode } from "../../src/sample/engine-failure.js";

describe("an overflow in an engine's words", () => {
  it.each([
    [
      "This model's maximum context length is 32768 tokens. However, you requested 8192 output tokens and your prompt contains 30000 input tokens, for a total of 38192 tokens.",
      { promptTokens: 30_000, maxTokens: 32_768, outputTokens: 8192 },
    ],
    [
      "'max_tokens' or 'max_completion_tokens' is too large: 64000. This model's maximum context length is 32768 tokens and your request has 20000 input tokens (64000 > 32768 - 20000).",
      { promptTokens: 20_000, maxTokens: 32_768, outputTokens: 64_000 },
    ],
    [
      "This model's maximum context length is 3000 tokens. However, your request has 12009 input tokens.",
      { promptTokens: 12_009, maxTokens: 3000, outputTokens: null },
    ],
  ])("tells prompt, limit and what was asked for: %s", (message, overflow) => {
    expect(classify(400, message, null)).toMatchObject({ kind: "context_overflow", retryable: false, overflow });
  });
});

it("an overflow that the sidecar finds itself is worded with both numbers, as an engine's is", () => {
  let refused: unknown = null;
  try {
    roomLeft(3000, 12_009);
  } catch (error) {
    refused = error;
  }
  const { body } = messagesError(dialectError(refused));
  expect(JSON.parse(body)).toMatchObject({ error: { message: "prompt is too long: 12009 tokens > 3000 maximum" } });
});

describe("a refusal's words (O.182)", () => {
  const words = "Input length (9000 tokens) exceeds the maximum allowed length (8192 tokens)";
  const read = async (body: string, status = 400) =>
    (await readFailure({ status, header: () => null, text: async () => body, read: async () => undefined })).error;

  it.each<[string, unknown]>([
    ["OpenAI's shape", { error: { message: words, type: "BadRequestError", code: 400 } }],
    ["flat", { object: "error", message: words }],
    ["an error that is a text", { error: words }],
    ["an error in an error", { error: { error: { message: words } } }],
    ["another engine's body in a text", { error: { message: JSON.stringify({ error: { message: words } }) } }],
    ["a message that is an object", { error: { message: { text: words } } }],
    ["detail", { detail: words }],
    ["detail that is an object", { detail: { error: { message: words } } }],
    ["detail that is a list", { detail: [{ loc: ["body"], msg: words }] }],
    ["a list of one", [{ error: { code: 400, message: words } }]],
    ["a bare JSON text", words],
    ["a shape that nobody knows", { errors: [{ msg: words }] }],
  ])("are found in %s", async (_shape, body) => {
    expect(await read(JSON.stringify(body))).toMatchObject({
      kind: "context_overflow",
      overflow: { promptTokens: 9000, maxTokens: 8192 },
    });
  });

  it.each(["{}", "[]", "null", "", "<html>Bad Request</html>"])("are ours where it has none: %s", async (body) => {
    expect(await read(body)).toMatchObject({ kind: "bad_request", message: "the engine answered 400" });
  });

  it.each([
    `[{'type': 'missing', 'loc': ('body', 'model'), 'msg': 'Field required', 'input': {'messages': [{'content': '${words}'}]}}]`,
    JSON.stringify([{ type: "missing", loc: ["body", "model"], msg: "Field required", input: { prompt: words } }]),
    `1 validation error for ChatCompletionRequest\nmessages\n  Input should be a list [type=list_type, input_value='${words}', input_type=str]`,
  ])("are not those of the request that a validator repeats: %s", async (message) => {
    for (const body of [{ error: { message } }, { detail: message }])
      expect((await read(JSON.stringify(body), 422)).kind).toBe("bad_request");
  });

  it.each<[string, unknown]>([
    ["wrapped", { error: { message: words, code: 400 } }],
    ["bare", { object: "error", message: words, code: 400 }],
    ["FastAPI's", { detail: words }],
  ])("are found where an error (%s) comes in place of a reply", (_shape, event) => {
    const message = withCode(readEngineChunk(event).error);
    expect(classify(null, message ?? "", null)).toMatchObject({ kind: "context_overflow" });
  });
});
