/**
 * The one request and the one stream of events that every dialect is read into and written from.
 * A dialect is a pair of pure functions: request body in, events out. It never sees a socket.
 */
import type { Dialect, Message, ToolDefinition } from "@tito/format";
import type { CutObject } from "../json/slices.js";

/**
 * How a tool was offered when it was not a plain function: inside a namespace, or as a custom tool that takes free text.
 * A dialect gives a call back in the shape in which the tool was offered.
 */
export interface CallShape {
  kind: "function" | "custom";
  name: string;
  namespace: string | null;
}

/** What the harness asked for, in whichever dialect. Absent fields are null or empty, never invented. */
export interface NeutralRequest {
  dialect: Dialect;
  stream: boolean;
  /** The harness wants usage inside the stream. */
  includeUsage: boolean;
  model: string | null;
  messages: Message[];
  tools: ToolDefinition[];
  toolChoice: "auto" | "none";
  maxOutputTokens: number | null;
  /** Sampling fields that the harness itself sent (temperature, top_p, seed, …), null values left out. */
  sampling: Record<string, number>;
  stop: string[];
  /** The harness asked for logprobs itself, so they are not stripped. */
  wantsLogprobs: boolean;
  /** Accepted, recorded, without effect on the prompt (user, store: false, cache keys, …). */
  ignored: string[];
  /** Fields that shape the distribution beyond `sampling` (forced tool choice, response format, logit bias, …), as JSON text. */
  constraints?: ReadonlyMap<string, string>;
  /** Tool name towards the policy → shape towards the harness, where the two differ. */
  callShapes?: ReadonlyMap<string, CallShape>;
  /** The harness's own body, where it speaks the engines' dialect (chat): it is passed on as it is spelled. */
  chatBody?: CutObject;
}

export interface Usage {
  promptTokens: number;
  completionTokens: number;
  cachedTokens: number | null;
  reasoningTokens: number | null;
}

export type NeutralFinish = "stop" | "length" | "tool_calls";

/** What a reply is made of, in order. `start` comes first, exactly one `finish` comes last. */
export type ReplyEvent =
  | { type: "start"; id: string; createdS: number; model: string; promptTokens?: number | undefined }
  | { type: "reasoning"; text: string }
  | { type: "content"; text: string }
  | { type: "tool_call"; index: number; id: string; name: string }
  | { type: "arguments"; index: number; text: string }
  | { type: "finish"; reason: NeutralFinish; usage: Usage; stopSequence: string | null };

/**
 * Writes events as the bytes of a dialect's stream.
 * `frames` are complete SSE events. From the first frame with `held: true` on, everything waits for the record to be durable.
 */
export interface StreamEncoder {
  encode(event: ReplyEvent): { text: string; held: boolean }[];
  /** What keeps an idle connection alive in this dialect. */
  keepalive(): string;
  /** The dialect's in-stream error, used only after a 200 was committed. */
  error(error: DialectError): string;
}

/** A failure in terms every dialect can word. `kind` decides type, status and wording. */
export interface DialectError {
  kind:
    | "bad_request"
    | "unsupported"
    | "context_overflow"
    | "unauthorized"
    | "forbidden"
    | "not_found"
    | "method_not_allowed"
    | "request_timeout"
    | "sealed"
    | "too_large"
    | "media_type"
    | "rate_limited"
    | "degraded"
    | "overloaded"
    | "unavailable"
    | "internal";
  message: string;
  /** Prompt tokens, the limit, and the output tokens asked for, where a dialect's overflow wording shows them. */
  overflow?: { promptTokens: number | null; maxTokens: number | null; outputTokens?: number | null };
  /** False for deterministic failures: sent as x-should-retry. */
  retryable: boolean;
  retryAfterS?: number;
}

/** A dialect: pure functions only. `parse` throws TitoError `bad_request` or `unsupported` with the offending field in its message. */
export interface DialectCodec {
  dialect: Dialect;
  parse(body: Uint8Array): NeutralRequest;
  stream(request: NeutralRequest): StreamEncoder;
  /** The whole reply as one JSON body. `events` is complete (start … finish). */
  reply(request: NeutralRequest, events: readonly ReplyEvent[]): string;
  /** HTTP status and JSON body of an error before any byte was sent. */
  error(error: DialectError): { status: number; body: string; headers: Record<string, string> };
}
