/** Errors in the words of the Responses API. */
import type { DialectError } from "./neutral.js";
import { retryHeaders } from "./retry-headers.js";

const OVERFLOW = "Your input exceeds the context window of this model. Please adjust your input and try again.";

const STATUS: Readonly<Record<DialectError["kind"], number>> = {
  bad_request: 400,
  unsupported: 400,
  context_overflow: 400,
  unauthorized: 401,
  not_found: 404,
  sealed: 410,
  too_large: 413,
  rate_limited: 429,
  overloaded: 503,
  unavailable: 503,
  internal: 500,
};

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
  const status = STATUS[error.kind];
  const body = JSON.stringify({
    error: { message: errorMessage(error), type: errorType(status), param: null, code: httpCode(error) },
  });
  return { status, body, headers: retryHeaders(error) };
}

function errorMessage(error: DialectError): string {
  return error.kind === "context_overflow" ? `${OVERFLOW} (${error.message})` : error.message;
}

function errorType(status: number): string {
  if (status === 401) return "authentication_error";
  if (status === 429) return "rate_limit_error";
  return status >= 500 ? "server_error" : "invalid_request_error";
}

function httpCode(error: DialectError): string {
  switch (error.kind) {
    case "context_overflow":
      return "context_length_exceeded";
    case "rate_limited":
      return "rate_limit_exceeded";
    case "unauthorized":
      return "invalid_api_key";
    case "unsupported":
      return "unsupported_value";
    default:
      return error.kind;
  }
}
