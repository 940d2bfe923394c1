/** An engine's refusal, understood: which kind of failure it is, whether a retry can help, and how long to wait. */
import { TitoError } from "@tito/format";
import type { DialectError } from "../dialect/neutral.js";
import { asObject, asString } from "../json/narrow.js";
import { type EngineChunk, readError } from "./engine-chunk.js";
import { readOverflow } from "./overflow-wordings.js";
import type { UpstreamResponse } from "./upstream.js";

/** Statuses under which engines tell an overflow: 400 nearly always, 413 and 422 (TGI), 500 (llama.cpp in the middle of an answer); null inside a stream. */
const OVERFLOW_STATUSES: ReadonlySet<number | null> = new Set([null, 400, 413, 422, 500]);
const MESSAGE_CHARS_MAX = 2000;

/** What an engine answered instead of a reply. */
export interface EngineFailure {
  status: number;
  error: DialectError;
}

/** Reads a response that is not 2xx. Redirects count as refusals: they are never followed. */
export async function readFailure(response: UpstreamResponse): Promise<EngineFailure> {
  let unread = "";
  const body = await response.text().catch((error: unknown) => {
    unread = TitoError.is(error) ? `: ${error.message}` : "";
    return "";
  });
  const message = failureMessage(body) || `the engine answered ${response.status}${unread}`;
  return {
    status: response.status,
    error: classify(response.status, message, retryAfter(response.header("retry-after"))),
  };
}

/** Words an error event that came inside a stream, or an error body with status 200. */
export function classify(status: number | null, message: string, retryAfterS: number | null): DialectError {
  const text = printable(message).slice(0, MESSAGE_CHARS_MAX);
  const base = { message: text, ...(retryAfterS === null ? {} : { retryAfterS }) };
  const overflow = OVERFLOW_STATUSES.has(status) ? readOverflow(withoutEcho(text)) : null;
  if (overflow !== null) return { ...base, kind: "context_overflow", retryable: false, overflow };
  if (status === null) return { ...base, kind: "unavailable", retryable: true };
  if (status === 429) return { ...base, kind: "rate_limited", retryable: true };
  if (status === 503 || status === 529) return { ...base, kind: "overloaded", retryable: true };
  if (status === 408 || status === 425 || status === 502 || status === 504)
    return { ...base, kind: "unavailable", retryable: true };
  if (status >= 500) return { ...base, kind: "internal", retryable: true };
  if (status === 401 || status === 403) {
    return { ...base, message: "the engine refuses the sidecar's key", kind: "internal", retryable: false };
  }
  if (status >= 300 && status < 400) {
    return {
      ...base,
      message: `the engine answered with a redirect (${status}), which is not followed`,
      kind: "internal",
      retryable: false,
    };
  }
  return { ...base, kind: status === 404 ? "not_found" : "bad_request", retryable: false };
}

/** A validator's report (pydantic's, under vLLM and SGLang) repeats the request behind what it says: a conversation about context windows is no overflow. */
function withoutEcho(text: string): string {
  return text.replace(/\binput_value=.*|(?<=['"]loc['"]\s*:.*)['"]input['"]\s*:.*/s, "");
}

/** A failure of our own in terms that every dialect can word. */
export function dialectError(error: unknown): DialectError {
  if (!TitoError.is(error)) return { kind: "internal", message: "internal error of the sidecar", retryable: false };
  const message = error.hint === undefined ? error.message : `${error.message} (${error.hint})`;
  switch (error.code) {
    case "bad_request":
    case "usage":
      return { kind: "bad_request", message, retryable: false };
    case "unsupported":
      return { kind: "unsupported", message, retryable: false };
    case "context_overflow":
      return { ...classify(400, message, null), kind: "context_overflow" };
    case "unauthorized":
      return { kind: "unauthorized", message, retryable: false };
    case "forbidden_host":
      return { kind: "forbidden", message, retryable: false };
    case "not_found":
      return { kind: "not_found", message, retryable: false };
    case "method_not_allowed":
      return { kind: "method_not_allowed", message, retryable: false };
    case "request_timeout":
      return { kind: "request_timeout", message, retryable: false };
    case "trajectory_sealed":
      return { kind: "sealed", message, retryable: false };
    case "body_too_large":
      return { kind: "too_large", message, retryable: false };
    case "unsupported_media_type":
      return { kind: "media_type", message, retryable: false };
    case "capture_degraded":
      return { kind: "degraded", message, retryable: false };
    case "engine_without_ids":
    case "upstream_rejected":
    case "upstream_invalid":
      return { kind: "unavailable", message, retryable: false };
    case "upstream_unavailable":
      return { kind: "unavailable", message, retryable: true, retryAfterS: 5 };
    default:
      return { kind: "internal", message, retryable: false };
  }
}

function failureMessage(body: string): string {
  let json: unknown;
  try {
    json = JSON.parse(body);
  } catch {
    return body.trim().startsWith("<") ? "" : body.trim();
  }
  const words = wordsIn(json);
  // Some other shape: all of it, unless it says nothing.
  return words ?? (/\w/.test(body) && json !== null ? body.trim() : "");
}

/** The words of an error body: OpenAI's, flat, FastAPI's `detail`, a bare text, or a list that holds one of them. */
function wordsIn(json: unknown): string | null {
  const value = Array.isArray(json) && json.length === 1 ? json[0] : json;
  const top = asObject(value);
  if (top === null) return asString(value);
  const { detail } = top;
  return (
    withCode(readError(top.error)) ??
    asString(top.message) ??
    asString(detail) ??
    withCode(readError(asObject(detail)?.error)) ??
    asString(asObject(detail)?.message)
  );
}

/** What an engine says, and its code where the words do not hold it: some tell an overflow by the code alone. */
export function withCode(error: EngineChunk["error"]): string | null {
  if (error === null) return null;
  const { message, code } = error;
  return code === null || /^\d+$/.test(code) || message.includes(code) ? message : `${message} (${code})`;
}

/** Seconds; an HTTP date counts from now. */
function retryAfter(value: string | null): number | null {
  if (value === null) return null;
  if (/^\d+(\.\d+)?$/.test(value)) return Number(value);
  const at = Date.parse(value);
  return Number.isNaN(at) ? null : Math.max(0, Math.ceil((at - Date.now()) / 1000));
}

/** Control characters never reach a log or a header. */
function printable(text: string): string {
  return text.replace(/[^\P{Cc}\n]/gu, " ");
}
