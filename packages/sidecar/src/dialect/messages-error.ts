/** Errors in the words of the Messages API. */
import { ERROR_WORDS } from "./error-words.js";
import type { DialectError } from "./neutral.js";
import { retryHeaders } from "./retry-headers.js";

/** HTTP error: `{"type": "error", "error": {type, message}}`. */
export function messagesError(error: DialectError): { status: number; body: string; headers: Record<string, string> } {
  const { status, messagesStatus } = ERROR_WORDS[error.kind];
  return { status: messagesStatus ?? status, body: messagesErrorBody(error), headers: retryHeaders(error) };
}

/** The error object, the same in a body and in a stream. */
export function messagesErrorBody(error: DialectError): string {
  return JSON.stringify({
    type: "error",
    error: { type: ERROR_WORDS[error.kind].messagesType, message: errorMessage(error) },
  });
}

/** Claude Code asks for fewer tokens only where its prompt leaves it 3,000 beside a margin of 1,000; with less it ends its run. */
const ROOM_TOKENS_MIN = 4_000;

/**
 * Agents compact on the words "prompt is too long", and on the words about `max_tokens` they ask for fewer. Both show numbers that
 * agents read.
 */
function errorMessage(error: DialectError): string {
  if (error.kind !== "context_overflow") return error.message;
  const { promptTokens, maxTokens, outputTokens = null } = error.overflow ?? { promptTokens: null, maxTokens: null };
  if (promptTokens === null || maxTokens === null) return `prompt is too long: ${error.message}`;
  if (outputTokens !== null && maxTokens - promptTokens >= ROOM_TOKENS_MIN) {
    const sum = `${promptTokens} + ${outputTokens} > ${maxTokens}`;
    return `input length and \`max_tokens\` exceed context limit: ${sum}, decrease input length or \`max_tokens\` and try again`;
  }
  return `prompt is too long: ${promptTokens} tokens > ${maxTokens} maximum`;
}
