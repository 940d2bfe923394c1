/**
 * Stop 3, which exact prompt is sent. A source turns a neutral request into what goes to the engine, and reads what comes back.
 * The engine source lets the engine render; a renderer source renders and tokenizes by itself and sends ids.
 */
import type { Junction, PromptMode } from "@tito/format";
import type { NeutralRequest, ReplyEvent } from "../dialect/neutral.js";
import type { EngineChunk } from "../sample/engine-chunk.js";
import type { Sampled } from "../sample/sampled.js";

export interface PromptInput {
  request: NeutralRequest;
  /** The request body as text when the harness speaks the engine's own dialect (chat), else null. */
  bodyText: string | null;
}

/** One call, ready to be sent. */
export interface PromptPlan {
  /** The exact ids that are sent; null when the engine renders and will tell. */
  promptIds: Int32Array | null;
  promptMode: PromptMode;
  junction: Junction | null;
  specialTextEscaped: boolean;
  rendererContract: string;
  path: string;
  body: string;
  /** The engine is asked to stream. */
  stream: boolean;
  /** The engine's own chunks are what the harness gets, minus what only the sidecar asked for. */
  passthrough: boolean;
  /** Effective sampling fields, as stored with the turn. */
  sampling: Record<string, unknown>;
  /** A fresh reader for each attempt. */
  reader(): ReplyReader;
}

/** Turns the pieces of one reply into events. `end` gives the finish, once everything is known. */
export interface ReplyReader {
  read(chunk: EngineChunk): ReplyEvent[];
  end(sampled: Sampled): ReplyEvent[];
}

export interface PromptSource {
  /** @throws TitoError `unsupported` or `context_overflow` before any token is spent. */
  prepare(input: PromptInput): Promise<PromptPlan>;
  /** Prompt ids that the request would have. */
  countTokens(input: PromptInput): Promise<number>;
}
