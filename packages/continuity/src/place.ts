/** Puts a turn on its segment's line: the one place where the state grows. */
import type { SharedPrefix } from "@tito/format";
import { type History, historyMessages, keptMessages } from "./history.js";
import { addMark, insert, moveLine, type Point } from "./prefix-tree.js";
import {
  type EngineState,
  lastTurn,
  pointOnLine,
  rememberTurn,
  type Segment,
  sampledWithin,
  segmentOf,
  type TurnEntry,
} from "./state.js";
import type { Continuation } from "./types.js";

/** A turn with its place: the prompt is the first `prompt_keep` ids of the segment's line, then `prompt_suffix`. */
export interface Placement extends Omit<TurnEntry, "prompt_tokens" | "end_tokens" | "sampled_tokens"> {
  /** Set when the turn opens its segment. */
  opening: { parent: SharedPrefix | null; continues: Continuation | null } | null;
  prompt_keep: number;
  prompt_suffix: Int32Array;
  sampled_ids: Int32Array;
  /** The checkpoint's turn that the prompt starts with, null when none. */
  extended: TurnEntry | null;
}

/** Grows the line, marks prompt and checkpoint, and makes the turn known. The caller has checked that the placement fits. */
export function placeTurn(state: EngineState, placement: Placement): void {
  const { opening, prompt_keep, prompt_suffix, sampled_ids, extended, ...entry } = placement;
  const segment =
    opening === null ? segmentOf(state, placement.segment) : openSegment(state, placement.segment, opening);
  const before = segment.turns.length === 0 ? null : segment.end;
  const sampledBefore = sampledOnLine(state, segment, prompt_keep);
  const promptEnd = insert(segment.end, prompt_suffix);
  addMark(promptEnd, "prompts", placement.call_id);
  const end = insert(promptEnd, sampled_ids);
  const checkpointable = placement.checkpointable && sampled_ids.length > 0;
  if (checkpointable) addMark(end, "checkpoints", placement.call_id);
  moveLine(segment.number, before, end);
  segment.end = end;
  const turn: TurnEntry = {
    ...entry,
    checkpointable,
    prompt_tokens: prompt_keep + prompt_suffix.length,
    end_tokens: end.depth,
    sampled_tokens: sampledBefore + sampled_ids.length,
  };
  segment.turns.push(turn);
  rememberTurn(state, turn, extended);
}

function openSegment(state: EngineState, number: number, opening: NonNullable<Placement["opening"]>): Segment {
  const { parent, continues } = opening;
  const end: Point = parent === null ? { node: state.tree, depth: 0 } : pointOnLine(state, parent);
  const segment: Segment = { number, parent, turns: [], end, closed: null, continued: false };
  state.segments.set(number, segment);
  state.next_segment = Math.max(state.next_segment, number + 1);
  if (continues !== null) segmentOf(state, continues.segment).continued = true;
  return segment;
}

/** Sampled ids on the line before this turn's own. */
function sampledOnLine(state: EngineState, segment: Segment, tokens: number): number {
  if (segment.turns.length > 0) return lastTurn(segment).sampled_tokens;
  return segment.parent === null ? 0 : sampledWithin(state, { segment: segment.parent.segment, tokens });
}

/** The history after a turn: its request's messages, then its reply. `messages_keep` counts in it. */
export function historyAfter(turn: TurnEntry): History {
  return { base: turn.history, keep: turn.history.length, own: [turn.reply], length: turn.history.length + 1 };
}

/** How many of a request's leading messages equal, to the letter, the history after an earlier turn. */
export function messagesKeep(against: TurnEntry, messages: Parameters<typeof keptMessages>[1]): number {
  return keptMessages(historyMessages(historyAfter(against)), messages);
}
