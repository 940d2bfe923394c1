/** Errors in the words of the Responses API. */
import { ERROR_WORDS, openAiErrorBody } from "./error-words.js";
import type { DialectError } from "./neutral.js";
import { retryHeaders } from "./retry-headers.js";

const OVERFLOW = "Your input exceeds the context window of this model. Please adjust your input and try again.";

/**
 * The `code` of a failed response. Codex knows `context_length_exceeded` (it compacts), `rate_limit_exceeded` (it waits) and
 * `invalid_prompt` (it gives up); every other code it retries.
 */
export function errorCode(error: DialectError): string {
  switch (error.kind) {
    case "context_overflow":
      return "context_length_exceeded";
    case "rate_limited":
      return "rate_limit_exceeded";
    default:
      return error.retryable ? "server_error" : "invalid_prompt";
  }
}

/** HTTP error of the OpenAI APIs: `{"error": {message, type, param, code}}`. */
export function responsesError(error: DialectError): { status: number; body: string; headers: Record<string, string> } {
  const body = openAiErrorBody(error, errorMessage(error), null);
  return { status: ERROR_WORDS[error.kind].status, body, headers: retryHeaders(error) };
}

function errorMessage(error: DialectError): string {
  return error.kind === "context_overflow" ? `${OVERFLOW} (${error.message})` : error.message;
}
