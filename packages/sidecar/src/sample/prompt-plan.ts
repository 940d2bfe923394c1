/** What stop 3 hands to stop 4: one call with its exact prompt, ready to be sent, and the reader of its reply. */
import type { DecisionEvidence, Junction, PromptMode } from "@tito/format";
import type { ReplyEvent } from "../dialect/neutral.js";
import type { EngineChunk } from "./engine-chunk.js";
import type { Sampled } from "./sampled.js";
import type { SentCall } from "./sent-call.js";
import type { UnstreamedReason } from "./stream-trust.js";

/** What of a plan goes into the turn's decision: the checkpoint that was fixed, and why or how the prompt came about. */
export interface PromptEvidence {
  /** Call id of the checkpoint that the prompt was built from; null in full history. */
  checkpoint: string | null;
  evidence: Pick<DecisionEvidence, "fallback" | "shadow">;
}

/** The text of ids, marks included; null where nobody can tell. */
export type TextOf = (ids: Int32Array) => Promise<string | null>;

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
  /** Why this engine is not asked to; null where it is, or where this request needs a whole body. */
  streamReason: UnstreamedReason | null;
  /** The engine's own chunks are what the harness gets, minus what only the sidecar asked for. */
  passthrough: boolean;
  /** Effective sampling fields, as stored with the turn. */
  sampling: Record<string, unknown>;
  /** The call that goes on behind ids that were sampled before the engine aborted; null where that is not possible. */
  resume(sampledIds: Int32Array): SentCall | null;
  /** A fresh reader for each attempt. `name`: what ids of tool calls are made of where the engine gives none. */
  reader(name: string): ReplyReader;
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
