/** Commits a decided turn: the line grows, the turn and its checkpoint become known. */
import { TitoError } from "@tito/format";
import { extendHistory } from "./history.js";
import { addMark, insert, moveLine, type Point } from "./prefix-tree.js";
import {
  type EngineState,
  lastTurn,
  lineTokens,
  pointOnLine,
  rememberTurn,
  type Segment,
  sampledWithin,
  segmentOf,
  type TurnEntry,
} from "./state.js";
import type { Decision, EngineTurn } from "./types.js";

/**
 * Applies a decision and returns the state, which is the same object: the caller hands it over.
 * Commit numbers ascend. Throws `internal` when the decision does not fit the state (another turn was committed to that tip since).
 */
export function commit(state: EngineState, turn: EngineTurn, decision: Decision, commitNumber: number): EngineState {
  checkFit(state, turn, decision, commitNumber);
  const segment = decision.kind === "append" ? segmentOf(state, decision.segment) : openSegment(state, decision);
  const before = segment.turns.length === 0 ? null : segment.end;
  const from = before ?? startOf(state, decision);
  const sampledBefore = sampledAt(state, segment, decision.prompt_keep);
  const promptEnd = insert(from, turn.prompt_ids.subarray(decision.prompt_keep));
  addMark(promptEnd, "prompts", turn.call_id);
  const end = insert(promptEnd, turn.sampled_ids);
  const checkpointable = turn.checkpointable && turn.sampled_ids.length > 0;
  if (checkpointable) addMark(end, "checkpoints", turn.call_id);
  moveLine(segment.number, before, end);
  segment.end = end;
  const entry = entryOf(state, turn, decision, {
    commit: commitNumber,
    segment: segment.number,
    end_tokens: end.depth,
    sampled_tokens: sampledBefore + turn.sampled_ids.length,
    checkpointable,
  });
  segment.turns.push(entry);
  const extended = decision.evidence.checkpoint_call_id;
  rememberTurn(state, entry, extended == null ? null : (state.turns.get(extended) ?? null));
  return state;
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

function openSegment(state: EngineState, decision: Decision & { kind: "branch" | "new_segment" }): Segment {
  const { parent, segment: number } = decision;
  const end = startOf(state, decision);
  const segment: Segment = { number, parent, turns: [], end, closed: null, continued: false };
  state.segments.set(number, segment);
  state.next_segment = number + 1;
  if (decision.continues !== null) segmentOf(state, decision.continues.segment).continued = true;
  return segment;
}

function startOf(state: EngineState, decision: Decision): Point {
  if (decision.kind === "append") return segmentOf(state, decision.segment).end;
  return decision.parent === null ? { node: state.tree, depth: 0 } : pointOnLine(state, decision.parent);
}

/** Sampled ids on the line before this turn's own. */
function sampledAt(state: EngineState, segment: Segment, tokens: number): number {
  if (segment.turns.length > 0) return lastTurn(segment).sampled_tokens;
  return segment.parent === null ? 0 : sampledWithin(state, { segment: segment.parent.segment, tokens });
}

type Placed = Pick<TurnEntry, "commit" | "segment" | "end_tokens" | "sampled_tokens" | "checkpointable">;

function entryOf(state: EngineState, turn: EngineTurn, decision: Decision, placed: Placed): TurnEntry {
  const against = decision.evidence.against_call_id;
  const base = against == null ? undefined : state.turns.get(against);
  const keep = base === undefined ? 0 : decision.messages_keep;
  const whole = base === undefined ? null : extendHistory(base.history, base.history.length, [base.reply]);
  return {
    ...placed,
    call_id: turn.call_id,
    lane: turn.lane,
    prompt_tokens: turn.prompt_ids.length,
    delivery: "unknown",
    history: extendHistory(whole, keep, turn.messages.slice(keep)),
    reply: turn.reply,
    tools_sha256: turn.tools_sha256,
    renderer_contract: turn.renderer_contract,
  };
}
