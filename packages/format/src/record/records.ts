/**
 * The plain records that a segment file and a journal hold. `docs/format.md` describes the same fields for readers in any language.
 * Keys on disk are the keys here. Ids are int32, logprobs float32 when every value survives the round trip, else float64.
 */
import type { Message, ToolDefinition } from "./messages.js";

/** Version of the bytes that this writer makes. See the version history in docs/format.md. */
export const FORMAT_VERSION = 1;

/** Types below 0x80 must be understood by a reader; types from 0x80 on are skipped by readers that do not know them. */
export const RecordType = {
  segment_header: 0x01,
  turn: 0x02,
  seal: 0x03,
  parked: 0x04,
  journal_header: 0x10,
  intent: 0x11,
  commit: 0x12,
  delivery: 0x13,
  replay: 0x14,
  uncaptured: 0x15,
  lifecycle: 0x16,
  gap: 0x17,
} as const;
export type RecordTypeName = keyof typeof RecordType;

/** A place in a trajectory's token lines: the first `tokens` ids of segment `segment`'s line. */
export interface SharedPrefix {
  segment: number;
  tokens: number;
}

/** `main`, `sub:<id>`, `aux:<kind>` or `compaction`. */
export type Lane = "main" | "compaction" | `sub:${string}` | `aux:${string}`;

/** Why a lane was chosen. `rule` names the rule (versioned data), `detail` what it saw. */
export interface LaneEvidence {
  rule: string;
  detail: string;
}

export type PromptMode = "full_history" | "incremental";
export type Dialect = "chat" | "completions" | "responses" | "messages";
/** `abort` and `error` never reach a harness as such; see contracts. */
export type FinishReason = "stop" | "length" | "tool_calls" | "abort" | "error" | "unknown";
export type LogprobMode = "raw" | "processed" | "unknown";
export type DecisionKind = "append" | "branch" | "new_segment";

/** Which weights sampled which ids: `[start, end)` over the turn's sampled ids. */
export interface VersionSpan {
  version: string;
  start: number;
  end: number;
}

/** How a certified junction joined the checkpoint and the rendered suffix (incremental mode only). */
export interface Junction {
  kind: string;
  /** Ids of the template's own that stand between checkpoint and suffix; never trained. */
  seam_ids: Int32Array;
  certificate: string;
}

/** What the continuity engine saw when it decided; enough to explain the decision and to realign later. */
export interface DecisionEvidence {
  /** Longest common prefix of the prompt ids with any line of the trajectory, in tokens. */
  match_tokens: number;
  /** Length of the checkpoint or line that the match was found in. */
  against_tokens: number;
  /** First differing id on the earlier line, null when the earlier line ended. */
  expected_id: number | null;
  /** First differing id in this prompt, null when the prompt ended. */
  actual_id: number | null;
  /** Sampled ids of the earlier line that lie inside the match. */
  kept_sampled: number;
  /** Message-level cause, from the closed drift taxonomy; null when nothing drifted. */
  cause: string | null;
  /** Where the messages differ, in words, bounded. */
  cause_detail: string | null;
  /** Length of the checkpoint that the prompt starts with; 0 when there is none. */
  checkpoint_tokens?: number;
  /** The turn of that checkpoint. */
  checkpoint_call_id?: string | null;
  /** The turn whose history (request messages, then reply) `messages_keep` counts in and that `cause` compares with. */
  against_call_id?: string | null;
  /** Incremental mode: why the prompt was rendered in full; absent when it was not, or when the request had nothing to build on. */
  fallback?: { reason: string; detail: string };
  /** Incremental mode, on a sampled fraction of calls: length of the full rendering, and how many leading ids the prompt shares with it. */
  shadow?: { full_tokens: number; match_tokens: number };
}

/** One policy call with exact ids. The unit of capture. */
export interface TurnRecord {
  call_id: string;
  lane: Lane;
  lane_evidence: LaneEvidence;
  dialect: Dialect;
  stream: "live" | "synthetic" | "none";
  /** Earlier messages of this segment that the request repeats unchanged, then the new ones. */
  messages_keep: number;
  messages_new: Message[];
  /** Null when unchanged since the segment's previous turn. */
  tools: ToolDefinition[] | null;
  tools_sha256: Uint8Array;
  /** Effective sampling fields, as sent upstream. */
  sampling: Record<string, unknown>;
  logprob_mode: LogprobMode;
  prompt_mode: PromptMode;
  /** Prompt ids = first `prompt_keep` ids of this segment's line, then `prompt_suffix`. */
  prompt_keep: number;
  prompt_suffix: Int32Array;
  /** SHA-256 over the full prompt ids as little-endian int32. */
  prompt_sha256: Uint8Array;
  sampled_ids: Int32Array;
  /** Same length as `sampled_ids`, or null when the reply had none. NaN stands where a value is missing or not finite. */
  logprobs: Float32Array | Float64Array | null;
  /** Indexes into `sampled_ids` whose logprob was missing or not finite, with what stood there. */
  logprob_gaps: { index: number; was: string }[];
  finish_reason: FinishReason;
  /** Stop token id, stop string, or null. */
  stop_reason: number | string | null;
  /** Why this turn can not be a checkpoint or a sample; empty for a whole turn. */
  defects: string[];
  usage: { prompt_tokens: number | null; completion_tokens: number | null; cached_tokens: number | null };
  weight_versions: VersionSpan[];
  engine: { kind: string; version: string | null; model: string };
  /** Renderer bundle digest, or `engine:<sha256>` for the engine source. */
  renderer_contract: string;
  decision: { kind: DecisionKind; reason: string; evidence: DecisionEvidence };
  junction: Junction | null;
  /** The assistant message as it was returned to the harness. */
  message: Message;
  /** True when the output did not parse and the harness got raw text. */
  malformed: boolean;
  /** True when text of special tokens in values was encoded as plain text. */
  special_text_escaped: boolean;
  upstream_request_id: string | null;
  /** Milliseconds since the epoch. */
  times: { received_ms: number; sent_ms: number; first_token_ms: number | null; finished_ms: number };
  /** Why the engine was not asked to stream although it has streams, or has none; absent where it was, or where the request needs a whole body. */
  stream_reason?: string;
  /** The engine's own word, where `finish_reason` is `unknown`. */
  engine_finish?: string;
}

/** First record of every segment file. */
export interface SegmentHeader {
  format_version: number;
  writer_version: string;
  trajectory_id: string;
  segment: number;
  boot_id: string;
  config_sha256: Uint8Array;
  created_ms: number;
  /** Chain head of the journal when this file was opened: a missing or swapped file is noticed. */
  previous_head: { seq: number; digest: Uint8Array; bytes: number } | null;
  /** Where this segment's line begins; null for a line of its own. */
  parent: SharedPrefix | null;
  /** Set when this file continues a parked segment or a recovered checkpoint: both are one segment to the materializer. */
  continues: { segment: number; why: "parked" | "recovered" } | null;
}

/** Last record of a file that was closed in order. */
export interface SealRecord {
  /** Records and bytes of the file before this one. */
  records: number;
  bytes: number;
  /** Chain digest of the record before this one. */
  head: Uint8Array;
  reason: string;
  sealed_ms: number;
}

/** This file gets no more records; a later file may say that it continues it. */
export interface ParkedRecord {
  records: number;
  bytes: number;
  parked_ms: number;
}

export interface JournalHeader {
  format_version: number;
  writer_version: string;
  trajectory_id: string;
  boot: number;
  boot_id: string;
  run_id: string | null;
  group_id: string | null;
  trial_id: string | null;
  attempt: number;
  metadata: Record<string, string>;
  /** Redacted configuration, as canonical JSON text. */
  config_json: string;
  config_sha256: Uint8Array;
  previous_head: { seq: number; digest: Uint8Array; bytes: number } | null;
  created_ms: number;
  /** What "durable" meant to this boot: `write` survives the process, not the machine. Absent means `fsync`. */
  durability?: "fsync" | "write";
}

/**
 * A request body as bytes: `deflate` inflates to the edit text against an earlier call's body
 * (`prefix` bytes kept from its start, `suffix` bytes kept from its end, the rest in between).
 */
export interface BodyDelta {
  base_call_id: string | null;
  prefix: number;
  suffix: number;
  deflate: Uint8Array;
  bytes: number;
  sha256: Uint8Array;
}

/** Written before the engine is asked. An intent without a turn, uncaptured or aborted record is a dangling call. */
export interface IntentRecord {
  call_id: string;
  dialect: Dialect;
  path: string;
  /** Allow-listed request headers only. */
  headers: Record<string, string>;
  body: BodyDelta;
  received_ms: number;
}

/** Ties a turn frame to its place in the order of the trajectory. */
export interface CommitRecord {
  commit: number;
  call_id: string;
  file: string;
  seq: number;
  digest: Uint8Array;
  bytes: number;
}

export interface DeliveryRecord {
  call_id: string;
  outcome: "delivered" | "failed";
  bytes: number;
  status: number;
  detail: string | null;
  at_ms: number;
}

/** A finished answer was served again to a retry; makes no turn. */
export interface ReplayRecord {
  call_id: string;
  replay_call_id: string;
  matched_by: string;
  at_ms: number;
}

/** A call that ended without token ids: upstream error, abort before any id, an engine without ids, a legal request that was refused. */
export interface UncapturedRecord {
  call_id: string;
  reason: string;
  status: number | null;
  detail: string;
  /** True when sampled tokens were lost: the run becomes capture_incomplete. */
  lost_tokens: boolean;
  at_ms: number;
}

export interface LifecycleRecord {
  event: "start" | "recovered" | "sealing" | "sealed" | "degraded" | "crash" | "config" | "shutdown";
  detail: string;
  at_ms: number;
}

/** Something that should be on disk and is not. */
export interface GapRecord {
  call_id: string | null;
  reason: string;
  at_ms: number;
}

/** Record type name → record. */
export interface RecordMap {
  segment_header: SegmentHeader;
  turn: TurnRecord;
  seal: SealRecord;
  parked: ParkedRecord;
  journal_header: JournalHeader;
  intent: IntentRecord;
  commit: CommitRecord;
  delivery: DeliveryRecord;
  replay: ReplayRecord;
  uncaptured: UncapturedRecord;
  lifecycle: LifecycleRecord;
  gap: GapRecord;
}
