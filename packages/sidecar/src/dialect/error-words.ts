/** The words that every dialect has for one failure: one table, so that one refusal is the same everywhere. docs/errors.md shows it, and a test keeps the two equal. */
import type { DialectError } from "./neutral.js";

export interface ErrorWords {
  status: number;
  /** Where Anthropic's differs. */
  messagesStatus?: number;
  /** `code` in OpenAI's dialects: the one that their clients act on, else ours. */
  code: string;
  /** `type` in the Messages API, which has no codes. */
  messagesType: string;
}

export const ERROR_WORDS: Readonly<Record<DialectError["kind"], ErrorWords>> = {
  bad_request: { status: 400, code: "bad_request", messagesType: "invalid_request_error" },
  unsupported: { status: 400, code: "unsupported", messagesType: "invalid_request_error" },
  context_overflow: { status: 400, code: "context_length_exceeded", messagesType: "invalid_request_error" },
  unauthorized: { status: 401, code: "invalid_api_key", messagesType: "authentication_error" },
  forbidden: { status: 403, code: "forbidden_host", messagesType: "permission_error" },
  not_found: { status: 404, code: "not_found", messagesType: "not_found_error" },
  method_not_allowed: { status: 405, code: "method_not_allowed", messagesType: "invalid_request_error" },
  request_timeout: { status: 408, code: "request_timeout", messagesType: "timeout_error" },
  sealed: { status: 410, code: "trajectory_sealed", messagesType: "invalid_request_error" },
  too_large: { status: 413, code: "body_too_large", messagesType: "request_too_large" },
  media_type: { status: 415, code: "unsupported_media_type", messagesType: "invalid_request_error" },
  rate_limited: { status: 429, code: "rate_limit_exceeded", messagesType: "rate_limit_error" },
  degraded: { status: 503, code: "capture_degraded", messagesType: "api_error" },
  overloaded: { status: 503, messagesStatus: 529, code: "overloaded", messagesType: "overloaded_error" },
  unavailable: { status: 503, code: "unavailable", messagesType: "api_error" },
  internal: { status: 500, code: "internal", messagesType: "api_error" },
};

/** `type` in OpenAI's dialects. */
function openAiType(status: number): string {
  if (status === 401) return "authentication_error";
  if (status === 403) return "permission_error";
  if (status === 429) return "rate_limit_error";
  return status >= 500 ? "server_error" : "invalid_request_error";
}

/** OpenAI's error envelope. */
export function openAiErrorBody(error: DialectError, message: string, param: string | null): string {
  const { status, code } = ERROR_WORDS[error.kind];
  return JSON.stringify({ error: { message, type: openAiType(status), param, code } });
}
