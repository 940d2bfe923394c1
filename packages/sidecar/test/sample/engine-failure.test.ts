import { describe, expect, it } from "vitest";
import { messagesError } from "../../src/dialect/messages-error.js";
import { roomLeft } from "../../src/prompt/room.js";
import { classify, dialectError } from "../../src/sample/engine-failure.js";

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
