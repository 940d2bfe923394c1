/**
 * Stop 3, which exact prompt is sent. A source turns a neutral request into what goes to the engine, and reads what comes back.
 * The engine source lets the engine render; the renderer source renders and tokenizes by itself and sends ids.
 */
import type { EngineState } from "@tito/continuity";
import type { DecisionEvidence, Junction, PromptMode } from "@tito/format";
import type { NeutralRequest, ReplyEvent } from "../dialect/neutral.js";
import type { TextOf } from "../drift-texts.js";
import type { SentCall } from "../engine-adapter/adapter.js";
import type { EngineChunk } from "../sample/engine-chunk.js";
import type { Sampled } from "../sample/sampled.js";
import type { TurnEnding } from "../turn-log.js";

/** What was recorded before a request: where incremental mode looks for its checkpoint. */
export interface Conversation {
  state: EngineState;
  harness: string | null;
  /** Call id → how that turn's sampling ended. */
  endings: ReadonlyMap<string, TurnEnding>;
}

export interface PromptInput {
  request: NeutralRequest;
  conversation: Conversation;
}

/** What of a plan goes into the turn's decision: the checkpoint that was fixed, and why or how the prompt came about. */
export interface PromptEvidence {
  /** Call id of the checkpoint that the prompt was built from; null in full history. */
  checkpoint: string | null;
  evidence: Pick<DecisionEvidence, "fallback" | "shadow">;
}

/** One call, ready to be sent. */
export interface PromptPlan extends PromptEvidence {
  /** The exact ids that are sent; null when the engine renders and will tell. */
  promptIds: Int32Array | null;
  promptMode: PromptMode;
  junction: Junction | null;
  specialTextEscaped: boolean;
  rendererContract: string;
  /** The call in the engine's words. */
  call: SentCall;
  /** The engine is asked to stream. */
  stream: boolean;
  /** The engine's own chunks are what the harness gets, minus what only the sidecar asked for. */
  passthrough: boolean;
  /** Effective sampling fields, as stored with the turn. */
  sampling: Record<string, unknown>;
  /** The call that goes on behind ids that were sampled before the engine aborted; null where that is not possible. */
  resume(sampledIds: Int32Array): SentCall | null;
  /** A fresh reader for each attempt. */
  reader(): ReplyReader;
  /** The text of ids, for the cause of a drift; null where nobody can tell. */
  textOf: TextOf | null;
}

/** Turns the pieces of one reply into events, in order: the next chunk is read when the last one's events are there. */
export interface ReplyReader {
  read(chunk: EngineChunk): ReplyEvent[] | Promise<ReplyEvent[]>;
  /** The finish, once everything is known. */
  end(sampled: Sampled): ReplyEvent[] | Promise<ReplyEvent[]>;
  /** After `end`: the output did not parse. Null where only the message can tell. */
  malformed(): boolean | null;
  /** The reply is given up, or was ended: nothing more is asked. */
  close(): void;
}

export interface PromptSource {
  /** @throws TitoError `unsupported` or `context_overflow` before any token is spent. */
  prepare(input: PromptInput): Promise<PromptPlan>;
  /** Prompt ids that the request would have. */
  countTokens(input: PromptInput): Promise<number>;
}
