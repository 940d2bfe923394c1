/**
 * The plain records that the pure stages work on. `read.ts` makes them from a trajectory directory;
 * tests make them by hand.
 */
import type { FinishReason, Lane, LogprobMode, Message, SharedPrefix, TurnRecord, VersionSpan } from "@tito/format";
import type { SpanKind } from "../recipe/reasons.js";
import type { ModelFacts } from "./model-facts.js";
import type { RequestFacts } from "./requests.js";
import type { VolatileCost } from "./volatile-text.js";

export type Delivery = "delivered" | "failed" | "unknown";

/** Defects of a reply that ended before the policy ended it. */
export const CUT_SHORT: ReadonlySet<string> = new Set([
  "aborted",
  "aborted_by_seal",
  "stream_cut",
  "engine_error",
  "unparsed_chunk",
]);

/** One policy call with exact ids, as selection and building need it. `turn` is its place in commit order, from 0. */
export interface EvidenceTurn {
  turn: number;
  call_id: string;
  /** Commit number, null when the commit frame is missing (a crash between the two frames). */
  commit: number | null;
  /** Number of the segment, after files that continue each other were joined. */
  segment: number;
  /** Path of the segment file relative to the trajectory, and the offset and length of the record's frame. */
  file: string;
  offset: number;
  bytes: number;
  lane: Lane;
  /** What its request looked like. */
  request: RequestFacts;
  /** The prompt was put together from recorded ids and a junction, not rendered afresh. */
  spliced: boolean;
  finish_reason: FinishReason;
  /** Kind, version and model of the engine that answered, as one text. */
  engine: string;
  defects: readonly string[];
  /** Why the frame or the prompt that it needs cannot be trusted, null when it can. */
  damage: string | null;
  delivery: Delivery;
  malformed: boolean;
  sampling: Readonly<Record<string, unknown>>;
  logprob_mode: LogprobMode;
  weight_versions: readonly VersionSpan[];
  decision: TurnRecord["decision"];
  /** Prompt = first `prompt_keep` ids of the segment's line at that moment, then `prompt_suffix`. */
  prompt_keep: number;
  prompt_suffix: Int32Array;
  prompt_sha256: Uint8Array;
  /** Ids of a certified junction at the start of `prompt_suffix`. */
  seam_tokens: number;
  sampled_ids: Int32Array;
  /** Same length as `sampled_ids`, NaN where missing; null when there are none. */
  logprobs: Float32Array | Float64Array | null;
  message: Message;
  /** The request begins a conversation nearly as an earlier one began: no assistant's message, nothing sampled in its prompt. */
  opens_again: boolean;
  /** The request offered at least one tool. */
  tools_offered: boolean;
  usage: TurnRecord["usage"];
  finished_ms: number;
}

/** A continuity segment: its turns in commit order. Files that continue a parked or recovered segment are already part of it. */
export interface EvidenceSegment {
  segment: number;
  parent: SharedPrefix | null;
  turns: EvidenceTurn[];
}

/** Ids that the recorder was given by its flags. */
export interface RecordedIdentity {
  run_id: string | null;
  group_id: string | null;
  trial_id: string | null;
  attempt: number;
  metadata: ReadonlyMap<string, string>;
}

/** A file that was read, for the manifest. `path` is relative to the input root. */
export interface InputFile {
  path: string;
  bytes: number;
  sha256: string;
}

/** Everything that one trajectory directory holds. */
export interface TrajectoryEvidence {
  trajectory_id: string;
  path: string;
  identity: RecordedIdentity;
  /** By segment number. */
  segments: EvidenceSegment[];
  /** All turns, `turns[i].turn === i`. */
  turns: EvidenceTurn[];
  /** Why the capture is incomplete: recorded gaps, damaged frames, calls that lost sampled tokens. Empty: nothing is known to be missing. */
  incomplete: string[];
  /** The first place where its records contradict each other although every checksum holds; null when nothing does. Such a trajectory never trains. */
  tampered: string | null;
  /** Calls that ended without ids, by reason. */
  uncaptured: ReadonlyMap<string, number>;
  /** Reason of the last call that ended without ids, and what was said, when no turn came after it. */
  last_uncaptured: string | null;
  /** When its last call ended, with ids or without; -1 without any call. */
  ended_ms: number;
  /** Intents without any outcome. */
  dangling_calls: number;
  /** Calls that lost every sampled id. */
  lost_calls: number;
  /** Texts that the harness changes by itself, and what they cost. */
  volatile: VolatileCost[];
  /** COMPLETE and manifest are there. */
  sealed: boolean;
  /** Made from a log, which may lack what every live call has. */
  imported: boolean;
  engine: { kind: string; version: string | null; model: string } | null;
  prompt_modes: string[];
  renderer_contracts: string[];
  /** What renderer bundles told of the model. */
  models: ModelFacts[];
  /** The token lines that the prompt digests were compared on, so that they are built once; null: not built yet. */
  lines: TokenLines | null;
}

/**
 * `[start, end)` of a line. For an `action` the ids are the first `end - start` sampled ids of `turn`
 * (all of them, unless a later prompt kept only a part); for the rest `turn` is the call whose prompt brought the ids.
 */
export interface Piece {
  start: number;
  end: number;
  kind: SpanKind;
  turn: EvidenceTurn;
}

/** The final token line of a segment, from its first token on, what it shares with its parent included. */
export interface Line {
  segment: number;
  /** Pieces in order, covering `[0, length)`. */
  pieces: Piece[];
  length: number;
  /** Tokens that come from the parent's line. */
  inherited: number;
  /** Own turns whose sampled ids are (at least partly) on the line. */
  turns: EvidenceTurn[];
  tokens: Int32Array;
  /** Own turns whose recorded prompt digest was found to be that of `tokens` up to this length. */
  proven: Map<EvidenceTurn, number>;
}

/** Lines of one trajectory by segment number; `lines.ts` builds them. */
export interface TokenLines {
  of(segment: number): Line;
}
