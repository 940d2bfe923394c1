/** Every engine version's words for an overflow are read, with their numbers, and told in each dialect as what its harnesses compact on (O.100). */
import { describe, expect, it } from "vitest";
import { codecOf } from "../../src/dialect/dialects.js";
import type { DialectError } from "../../src/dialect/neutral.js";
import { readEngineChunk } from "../../src/sample/engine-chunk.js";
import { classify, readFailure, withCode } from "../../src/sample/engine-failure.js";
import { OVERFLOW_WORDINGS } from "../../src/sample/overflow-wordings.js";

const WORDINGS = OVERFLOW_WORDINGS.map(({ source, example, told }) => [source, example, told] as const);

/** Bodies that engines wrap their words in. */
const BODIES: readonly (readonly [string, (message: string) => unknown])[] = [
  ["vLLM's and OpenAI's", (message) => ({ error: { message, type: "BadRequestError", param: null, code: 400 } })],
  ["SGLang's flat one", (message) => ({ object: "error", message, type: "BadRequestError", param: null, code: 400 })],
  ["SGLang's short one", (message) => ({ error: { message } })],
  ["FastAPI's", (message) => ({ detail: message })],
  ["TGI's", (message) => ({ error: message, error_type: "validation" })],
];

const refusal = (body: string, status = 400) =>
  readFailure({ status, header: () => null, read: async () => undefined, text: async () => body });

/** What harnesses look for: a code in OpenAI's dialects, words in the Messages API. */
const RECOGNISED = {
  chat: /"code":"context_length_exceeded"/,
  responses: /"code":"context_length_exceeded"/,
  messages: /prompt is too long: |exceed context limit: /,
} as const;

describe("an overflow in the words of an engine", () => {
  it.each(WORDINGS)("(%s) is read with its numbers: %s (O.100)", (_source, example, told) => {
    expect(classify(400, example, null)).toMatchObject({ kind: "context_overflow", retryable: false, overflow: told });
  });

  it.each(BODIES)("is read in %s body, at each status that one comes with (O.100)", async (_words, body) => {
    for (const { example, told } of OVERFLOW_WORDINGS) {
      for (const status of [400, 413, 422, 500]) {
        const { error } = await refusal(JSON.stringify(body(example)), status);
        expect([example, error.kind, error.overflow]).toEqual([example, "context_overflow", told]);
      }
    }
  });

  it.each([{}, { code: 400 }, { code: "400" }])("is read as an event of a stream with %j (O.100)", (fields) => {
    for (const { example } of OVERFLOW_WORDINGS) {
      const { error } = readEngineChunk({ error: { message: example, ...fields } });
      expect([example, classify(error!.status, withCode(error)!, null).kind]).toEqual([example, "context_overflow"]);
    }
  });

  it.each(["chat", "responses", "messages"] as const)(
    "is told in %s as what its harnesses compact on, before and after the 200 (O.100)",
    (dialect) => {
      const codec = codecOf(dialect);
      const request = codec.parse(Buffer.from(REQUESTS[dialect]));
      for (const { example, told } of OVERFLOW_WORDINGS) {
        const failure = classify(400, example, null);
        const { status, body, headers } = codec.error(failure);
        expect([example, status, headers["x-should-retry"]]).toEqual([example, 400, "false"]);
        expect(body).toMatch(RECOGNISED[dialect]);
        if (told.promptTokens !== null && told.maxTokens !== null) {
          expect(body).toContain(`${told.promptTokens}`);
          expect(body).toContain(`${told.maxTokens}`);
        }
        if (dialect === "chat") expect(body).toMatch(/maximum context length/i);
        expect(codec.stream(request).error(failure)).toMatch(RECOGNISED[dialect]);
      }
    },
  );

  it("may be a code or a type beside other words (O.100)", async () => {
    const { error } = await refusal(JSON.stringify({ error: { message: "no", code: "context_length_exceeded" } }));
    expect(error.kind).toBe("context_overflow");
    const type = "exceed_context_size_error";
    const typed = await refusal(JSON.stringify({ error: { code: 400, message: "no", type } }));
    expect(typed.error.kind).toBe("context_overflow");
  });

  it.each([
    "max_tokens must be at least 1, got 0",
    "model's context is being loaded",
    "temperature must be non-negative",
    "Invalid tool: name exceeds the maximum allowed length (64)",
    "stop: at most 4 strings",
  ])("is not what this says: %s (O.100)", (message) => {
    expect(classify(400, message, null).kind).toBe("bad_request");
  });

  it.each([401, 403, 404, 429, 503])("is not read from a failure with status %i (O.100)", (status) => {
    const failure: DialectError = classify(status, OVERFLOW_WORDINGS[0]!.example, null);
    expect(failure.kind).not.toBe("context_overflow");
  });
});

const REQUESTS = {
  chat: '{"messages":[{"role":"user","content":"a"}],"stream":true}',
  responses: '{"input":"a","stream":true}',
  messages: '{"max_tokens":5,"messages":[{"role":"user","content":"a"}],"stream":true}',
} satisfies Record<string, string>;
