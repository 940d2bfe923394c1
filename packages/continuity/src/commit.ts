/** Commits a decided turn: the line grows, the turn and its checkpoint become known. */
import { TitoError } from "@tito/format";
import { extendHistory } from "./history.js";
import { historyAfter, placeTurn } from "./place.js";
import { type EngineState, lastTurn, lineTokens, segmentOf, type TurnEntry } from "./state.js";
import type { Decision, EngineTurn } from "./types.js";

/**
 * Applies a decision and returns the state, which is the same object: the caller hands it over.
 * Commit numbers ascend. Throws `internal` when the decision does not fit the state (another turn was committed to that tip since).
 */
export function commit(state: EngineState, turn: EngineTurn, decision: Decision, commitNumber: number): EngineState {
  checkFit(state, turn, decision, commitNumber);
  const against = turnOf(state, decision.evidence.against_call_id);
  const keep = against === null ? 0 : decision.messages_keep;
  placeTurn(state, {
    call_id: turn.call_id,
    commit: commitNumber,
    segment: decision.segment,
    opening: decision.kind === "append" ? null : { parent: decision.parent, continues: decision.continues },
    prompt_keep: decision.prompt_keep,
    prompt_suffix: turn.prompt_ids.subarray(decision.prompt_keep),
    sampled_ids: turn.sampled_ids,
    checkpointable: turn.checkpointable,
    extended: turnOf(state, decision.evidence.checkpoint_call_id),
    lane: turn.lane,
    delivery: "unknown",
    history: extendHistory(against === null ? null : historyAfter(against), keep, turn.messages.slice(keep)),
    reply: turn.reply,
    tools_sha256: turn.tools_sha256,
    renderer_contract: turn.renderer_contract,
  });
  return state;
}

function turnOf(state: EngineState, callId: string | null | undefined): TurnEntry | null {
  return callId == null ? null : (state.turns.get(callId) ?? null);
}

function checkFit(state: EngineState, turn: EngineTurn, decision: Decision, commitNumber: number): void {
  const fail = (what: string): never => {
    throw new TitoError("internal", `continuity: ${what} (call ${turn.call_id}, commit ${commitNumber})`);
  };
  if (commitNumber <= state.last_commit) fail(`commit numbers must ascend, the last was ${state.last_commit}`);
  if (state.turns.has(turn.call_id)) fail("this call was committed before");
  if (decision.kind !== "append") {
    if (decision.segment !== state.next_segment) fail(`segment ${decision.segment} is not the next one`);
    return;
  }
  const segment = segmentOf(state, decision.segment);
  const isTip = lineTokens(segment) === decision.prompt_keep && lastTurn(segment).checkpointable;
  if (!isTip || segment.closed !== null) fail(`segment ${decision.segment} cannot be appended to any more`);
}
