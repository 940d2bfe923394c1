/** One failure, one status, one code: in every dialect, and in docs/errors.md. */
import { readFileSync } from "node:fs";
import { ERROR_CODES, type ErrorCode, TitoError } from "@tito/format";
import { describe, expect, it } from "vitest";
import { codecOf } from "../../src/dialect/dialects.js";
import { ERROR_WORDS } from "../../src/dialect/error-words.js";
import type { DialectError } from "../../src/dialect/neutral.js";
import { dialectError } from "../../src/sample/engine-failure.js";

const KINDS = Object.keys(ERROR_WORDS) as DialectError["kind"][];

/** What a dialect says of a failure: status, type, code. */
function said(dialect: "chat" | "responses" | "messages", failure: DialectError): unknown[] {
  const { status, body } = codecOf(dialect).error(failure);
  const { type, code } = (JSON.parse(body) as { error: { type: string; code?: string } }).error;
  return dialect === "messages" ? [status, type] : [status, type, code];
}

describe("a failure", () => {
  it.each(KINDS)("(%s) is told with the same status, type and code in both of OpenAI's dialects (O.5)", (kind) => {
    const failure: DialectError = { kind, message: "why", retryable: false };
    expect(said("responses", failure)).toEqual(said("chat", failure));
    expect(said("messages", failure)[0]).toBe(kind === "overloaded" ? 529 : said("chat", failure)[0]);
  });

  it("has its row in docs/errors.md", () => {
    const text = readFileSync(new URL("../../../../docs/errors.md", import.meta.url), "utf8").split(
      "## Towards a harness",
    )[1]!;
    const rows = text
      .split("\n")
      .filter((line) => line.startsWith("|"))
      .slice(2);
    const cells = rows.map((row) =>
      row
        .split("|")
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
    const right = KINDS.map((kind) => {
      const failure: DialectError = { kind, message: "why", retryable: false };
      const [status, type, code] = said("chat", failure);
      const [other, messagesType] = said("messages", failure);
      return [kind, other === status ? `${status}` : `${status} (${other})`, type, code, messagesType];
    });
    expect(cells).toEqual(right);
  });
});

describe("a refusal of our own", () => {
  /** The code that a client acts on, where OpenAI has one. */
  const KNOWN: Partial<Record<ErrorCode, string>> = {
    usage: "bad_request",
    context_overflow: "context_length_exceeded",
    unauthorized: "invalid_api_key",
  };
  const refusals = (Object.keys(ERROR_CODES) as ErrorCode[]).filter((code) => ERROR_CODES[code].status < 500);

  it.each([...refusals, "capture_degraded" as const])(
    "(%s) has the status and the code of docs/errors.md (O.5)",
    (code) => {
      const [status, , told] = said("chat", dialectError(new TitoError(code, "why")));
      expect([status, told]).toEqual([ERROR_CODES[code].status, KNOWN[code] ?? code]);
    },
  );
});
