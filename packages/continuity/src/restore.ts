/** Rebuilds the state from records after a restart, without deciding anything again. */
import type { SharedPrefix, TurnRecord } from "@tito/format";
import { extendHistory } from "./history.js";
import { historyAfter, placeTurn } from "./place.js";
import { createState, type EngineState, lastTurn, lineTokens, type TurnEntry } from "./state.js";
import type { Continuation, DeliveryState } from "./types.js";

/** A turn record and what its file and the journal say about it. */
export interface RestoredTurn {
  segment: number;
  /** From the segment's header. */
  parent: SharedPrefix | null;
  continues: Continuation | null;
  commit: number;
  delivery: DeliveryState;
  record: TurnRecord;
}

export interface Restored {
  state: EngineState;
  /** Turns that do not fit what is there (a file before them is damaged or missing), with the reason. They are left out. */
  skipped: { call_id: string; why: string }[];
}

/**
 * The state after the given turns, in commit order. Every segment is closed as `recovered`: new turns go to new files,
 * and the first prompt that extends a tip continues its segment.
 */
export function restore(turns: Iterable<RestoredTurn>): Restored {
  const state = createState();
  const skipped: Restored["skipped"] = [];
  for (const turn of turns) {
    const why = misfit(state, turn);
    if (why === null) placeRecord(state, turn);
    else skipped.push({ call_id: turn.record.call_id, why });
    state.next_segment = Math.max(state.next_segment, turn.segment + 1);
    state.last_commit = Math.max(state.last_commit, turn.commit);
  }
  for (const segment of state.segments.values()) segment.closed = "recovered";
  return { state, skipped };
}

/** Defects that leave the ids whole. A log probability that is missing, or usage that was not told, matters to training, not to continuity. */
const IDS_STAY_WHOLE: ReadonlySet<string> = new Set(["logprobs_missing", "logprob_not_finite", "usage_missing"]);

/** A turn may be extended: it has sampled ids, they are whole, and it was not aborted. */
export function isCheckpointable(record: Pick<TurnRecord, "sampled_ids" | "finish_reason" | "defects">): boolean {
  const aborted = record.finish_reason === "abort" || record.finish_reason === "error";
  return record.sampled_ids.length > 0 && !aborted && record.defects.every((defect) => IDS_STAY_WHOLE.has(defect));
}

function misfit(state: EngineState, turn: RestoredTurn): string | null {
  const { record, parent } = turn;
  if (turn.commit <= state.last_commit) return `commit ${turn.commit} comes after ${state.last_commit}`;
  if (state.turns.has(record.call_id)) return "a turn of this call is there already";
  const segment = state.segments.get(turn.segment);
  if (segment !== undefined)
    return lineTokens(segment) === record.prompt_keep ? null : `segment ${turn.segment} ends elsewhere`;
  const line = parent === null ? undefined : state.segments.get(parent.segment);
  if (parent !== null && (line === undefined || lineTokens(line) < parent.tokens))
    return `segment ${parent.segment} has no ${parent.tokens} tokens`;
  return record.prompt_keep === (parent?.tokens ?? 0) ? null : "earlier turns of this segment are missing";
}

function placeRecord(state: EngineState, turn: RestoredTurn): void {
  const { record } = turn;
  const known = state.segments.get(turn.segment);
  const { against_call_id, checkpoint_call_id } = record.decision.evidence;
  const against = turnOf(state, against_call_id) ?? (known === undefined ? null : lastTurn(known));
  const keep = against === null ? 0 : Math.min(record.messages_keep, against.history.length + 1);
  const continues = turn.continues !== null && state.segments.has(turn.continues.segment) ? turn.continues : null;
  placeTurn(state, {
    call_id: record.call_id,
    commit: turn.commit,
    segment: turn.segment,
    opening: known === undefined ? { parent: turn.parent, continues } : null,
    prompt_keep: record.prompt_keep,
    prompt_suffix: record.prompt_suffix,
    sampled_ids: record.sampled_ids,
    checkpointable: isCheckpointable(record),
    extended: turnOf(state, checkpoint_call_id),
    lane: record.lane,
    delivery: turn.delivery,
    history: extendHistory(against === null ? null : historyAfter(against), keep, record.messages_new),
    reply: record.message,
    tools_sha256: hex(record.tools_sha256),
    renderer_contract: record.renderer_contract,
  });
}

function turnOf(state: EngineState, callId: string | null | undefined): TurnEntry | null {
  return callId == null ? null : (state.turns.get(callId) ?? null);
}

function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
