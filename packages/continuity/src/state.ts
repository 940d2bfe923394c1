/**
 * What the engine remembers of one trajectory: the lines, the turns on them, and the messages that explain a drift.
 * The state is owned by one caller and changed in place; equal calls in equal order give equal states.
 */
import type { Lane, Message, SharedPrefix } from "@tito/format";
import { TitoError } from "@tito/format";
import type { History } from "./history.js";
import { climb, createTree, idsTo, type Point, type TreeNode } from "./prefix-tree.js";
import { replyKeys } from "./reply-keys.js";
import type { Continuation, DeliveryState } from "./types.js";

/** A recorded turn and its place on its segment's line: `prompt_tokens` ids, then the sampled ids up to `end_tokens`. */
export interface TurnEntry {
  call_id: string;
  commit: number;
  segment: number;
  lane: Lane;
  prompt_tokens: number;
  end_tokens: number;
  /** Sampled ids on this line from its root to the end of this turn. */
  sampled_tokens: number;
  checkpointable: boolean;
  delivery: DeliveryState;
  history: History;
  reply: Message;
  tools_sha256: string;
  renderer_contract: string;
}

export interface Segment {
  number: number;
  parent: SharedPrefix | null;
  turns: TurnEntry[];
  /** End of the line in the tree. */
  end: Point;
  /** Why no turn can be appended any more although the line may go on in another file. */
  closed: Continuation["why"] | null;
  /** True once another segment continues this closed one. */
  continued: boolean;
}

export interface EngineState {
  tree: TreeNode;
  segments: Map<number, Segment>;
  turns: Map<string, TurnEntry>;
  /** Checkpoint's call id → the turns that extended it, in commit order. */
  followers: Map<string, TurnEntry[]>;
  /** What a later request shows of a reply (tool-call id or text) → the turns with such a reply, in commit order. */
  replies: Map<string, TurnEntry[]>;
  last_of_lane: Map<Lane, TurnEntry>;
  /** Texts of replies in the compaction lane, newest last, bounded. */
  summaries: string[];
  next_segment: number;
  last_commit: number;
}

/** Replies of the compaction lane that are remembered. */
const SUMMARIES_MAX = 8;

export function createState(): EngineState {
  return {
    tree: createTree(),
    segments: new Map(),
    turns: new Map(),
    followers: new Map(),
    replies: new Map(),
    last_of_lane: new Map(),
    summaries: [],
    next_segment: 1,
    last_commit: 0,
  };
}

/** The segment with a number that a decision or record named. Throws `internal` when there is none. */
export function segmentOf(state: EngineState, number: number): Segment {
  const segment = state.segments.get(number);
  if (segment === undefined) throw new TitoError("internal", `continuity: no segment ${number} in this trajectory`);
  return segment;
}

/** The last turn of a segment; every segment has at least one. */
export function lastTurn(segment: Segment): TurnEntry {
  return segment.turns[segment.turns.length - 1]!;
}

/** Tokens on a segment's line. */
export function lineTokens(segment: Segment): number {
  return segment.end.depth;
}

/** A copy of the first `tokens` ids of a segment's line. Throws `internal` when the line is shorter. */
export function lineIds(state: EngineState, place: SharedPrefix): Int32Array {
  return idsTo(pointOnLine(state, place));
}

/** Where a line's first `tokens` ids end in the tree. */
export function pointOnLine(state: EngineState, place: SharedPrefix): Point {
  const segment = segmentOf(state, place.segment);
  if (place.tokens > segment.end.depth || place.tokens < 0)
    throw new TitoError("internal", `continuity: segment ${place.segment} has no ${place.tokens} tokens`);
  return climb({ node: segment.end.node, depth: place.tokens });
}

/** Sampled ids among the first `tokens` ids of a segment's line, whichever segment recorded them. */
export function sampledWithin(state: EngineState, place: SharedPrefix): number {
  let tokens = place.tokens;
  let segment = state.segments.get(place.segment);
  while (segment !== undefined && tokens > 0) {
    const turn = lastTurnBefore(segment.turns, tokens);
    if (turn !== undefined) return turn.sampled_tokens - Math.max(0, turn.end_tokens - tokens);
    if (segment.parent === null) return 0;
    tokens = Math.min(tokens, segment.parent.tokens);
    segment = state.segments.get(segment.parent.segment);
  }
  return 0;
}

/** The last turn of a segment whose sampled ids begin before a depth of its line. */
function lastTurnBefore(turns: readonly TurnEntry[], depth: number): TurnEntry | undefined {
  let low = 0;
  let high = turns.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (turns[middle]!.prompt_tokens < depth) low = middle + 1;
    else high = middle;
  }
  return turns[low - 1];
}

/** Records whether the harness got a turn's answer. Only ties between equal checkpoints, and retries, look at it. Unknown calls are ignored. */
export function setDelivery(state: EngineState, callId: string, outcome: DeliveryState): void {
  const turn = state.turns.get(callId);
  if (turn !== undefined) turn.delivery = outcome;
}

/** Notes that a segment's file takes no more records: the next turn that extends its tip opens a file that continues it. */
export function closeSegment(state: EngineState, number: number, why: Continuation["why"]): void {
  segmentOf(state, number).closed = why;
}

/** Adds a committed turn to all indexes. */
export function rememberTurn(state: EngineState, turn: TurnEntry, extended: TurnEntry | null): void {
  state.turns.set(turn.call_id, turn);
  if (extended !== null) listOf(state.followers, extended.call_id).push(turn);
  for (const key of replyKeys(turn.reply)) listOf(state.replies, key).push(turn);
  state.last_of_lane.set(turn.lane, turn);
  state.last_commit = Math.max(state.last_commit, turn.commit);
  if (turn.lane !== "compaction") return;
  const text = replyKeys({ ...turn.reply, tool_calls: [] })[0];
  if (text !== undefined) state.summaries.push(text.slice("text:".length));
  if (state.summaries.length > SUMMARIES_MAX) state.summaries.shift();
}

function listOf<V>(map: Map<string, V[]>, key: string): V[] {
  const list = map.get(key);
  if (list !== undefined) return list;
  const made: V[] = [];
  map.set(key, made);
  return made;
}
