/**
 * What differs between inference engines: where a call goes, how it asks for exact ids and log probabilities, how its reply is read,
 * and which routes tell about the engine. One file an engine; the rest of the sidecar knows this interface alone.
 */
import type { LogprobMode } from "@tito/format";
import type { EngineKind } from "../config/config.js";
import type { NeutralRequest } from "../dialect/neutral.js";
import type { Slice } from "../json/slices.js";
import type { SentCall } from "../sample/sent-call.js";
import type { Upstream } from "../sample/upstream.js";

interface CallFields {
  model: string;
  stream: boolean;
  /** Sampling fields that the harness left out, by vLLM's names, as JSON text. */
  sampling: ReadonlyMap<string, string>;
}

/** The engine renders: a chat body as the harness wrote it, to be asked for ids. */
export interface ChatCall extends CallFields {
  chatBody: string;
  /** Its members, where they are known already. */
  members?: readonly Slice[];
  /** Lowers an output limit of the body, or sets one where there is none; null leaves it alone. */
  maxOutputTokens: number | null;
}

/** The sidecar rendered: exact prompt ids. */
export interface IdsCall extends CallFields {
  request: Pick<NeutralRequest, "sampling" | "stop" | "constraints">;
  promptIds: Int32Array;
  maxTokens: number;
  /** Ids that end a turn. */
  stopTokenIds: readonly number[];
}

/** What an adapter may want to know of the engine before the first call. */
export interface EngineTarget {
  upstream: Upstream;
  model: string;
  /** The model's entry of the engine's list, as JSON text. */
  modelEntry: string;
}

export interface EngineAdapter {
  readonly kind: EngineKind;
  /** Null: its chat route gives no exact ids, so that only the renderer source works. */
  readonly chat: ((call: ChatCall) => SentCall) | null;
  /** @throws TitoError `unsupported` for what this engine can not be asked with ids. */
  ids(call: IdsCall): SentCall;
  /** False: its streams lose evidence by design, and it is never asked to stream. */
  readonly canStream: boolean;
  /** Log probability of the likeliest first token; null where a reply does not tell. Read only when `logprobMode` is null. */
  likeliest(json: unknown): number | null;
  /** What the engine's log probabilities are, where its replies say it; null: the temperatures tell. */
  logprobMode(replies: readonly unknown[]): LogprobMode | null;
  /** Where the values are not the sampled distribution's under some sampling; absent: the mode holds for every call. */
  logprobModeOf?(mode: LogprobMode, sampling: Readonly<Record<string, unknown>>): LogprobMode;
  version(upstream: Upstream): Promise<string | null>;
  /** The weights' version right now; null when the engine does not tell. */
  weightVersion(upstream: Upstream): Promise<string | null>;
  /** Longest prompt and answer together; null when the engine does not tell. */
  contextTokens(target: EngineTarget): Promise<number | null>;
  /** The engine's own ids of a chat, by a route that samples nothing; null where there is none. */
  tokenizeChat(upstream: Upstream, model: string, chat: Record<string, unknown>): Promise<Int32Array | null>;
  /** The text of ids, marks included; null where the engine does not tell at once. Absent: it has no such route, or renders nothing. */
  textOf?(upstream: Upstream, model: string, ids: Int32Array): Promise<string | null>;
  /** How many prompt ids a chat body will have; null: it cannot be asked. @throws TitoError `bad_request` with the engine's words. */
  readonly countTokens: ((upstream: Upstream, model: string, chatBody: string) => Promise<number>) | null;
  /** Headers that keep the calls of a trajectory together. */
  headers(trajectoryId: string): Record<string, string>;
  /** What is asked of the engine once, with the ids that end a turn, before any call. @throws TitoError when it can not serve a renderer. */
  checkStops?(target: EngineTarget, stopTokenIds: readonly number[]): Promise<void>;
}
