/** The decision: which segment a turn extends, or where a new one begins. Tokens decide; see docs/continuity.md. */
import type { DecisionEvidence } from "@tito/format";
import { placeOfDifference } from "./id-place.js";
import { type Opening, type OpeningFacts, openingOf } from "./opening.js";
import { messagesKeep } from "./place.js";
import { climb, deepestMarks, idAt, linesThrough, type Point, walk } from "./prefix-tree.js";
import type { DifferenceTexts } from "./reply-part.js";
import {
  type EngineState,
  lastTurn,
  lineTokens,
  pointOnLine,
  type Segment,
  sampledWithin,
  segmentOf,
  type TurnEntry,
} from "./state.js";
import type { Decision, EngineTurn } from "./types.js";

export interface DecideOptions {
  /** Call id of the checkpoint that was fixed when the prompt was built from it (incremental mode). Else the longest one wins. */
  checkpoint?: string;
  /** The texts that {@link textsWanted} asked for: they make a drift's cause certain. They never change where the turn goes. */
  texts?: DifferenceTexts;
}

/**
 * Decides for one turn; the state is not changed. Decisions are taken in commit order: decide, commit, decide, …
 * Work: one compare of the prompt, plus the new tokens and the number of lineages.
 */
export function decide(state: EngineState, turn: EngineTurn, options: DecideOptions = {}): Decision {
  const match = walk(state.tree, turn.prompt_ids);
  const winner = winningTurn(state, match, options.checkpoint);
  if (winner !== null && isOpenTip(state, winner)) return appendTo(state, turn, winner, match);
  return open(state, turn, { winner, match, texts: options.texts ?? null });
}

/** The longest checkpoint that the prompt starts with. Ties: delivered before undelivered, then the latest commit. */
function winningTurn(state: EngineState, match: Point, fixed: string | undefined): TurnEntry | null {
  const given = fixed === undefined ? undefined : state.turns.get(fixed);
  if (given?.checkpointable && isOnPath(state, given, match)) return given;
  const found = deepestMarks(match, "checkpoints");
  if (found === null) return null;
  return found.call_ids.map((id) => state.turns.get(id)!).reduce((best, turn) => (beats(turn, best) ? turn : best));
}

/** True when a turn's checkpoint is a prefix of what was matched. */
function isOnPath(state: EngineState, turn: TurnEntry, match: Point): boolean {
  if (turn.end_tokens > match.depth) return false;
  const checkpoint = pointOnLine(state, { segment: turn.segment, tokens: turn.end_tokens });
  return climb({ node: match.node, depth: turn.end_tokens }).node === checkpoint.node;
}

function beats(a: TurnEntry, b: TurnEntry): boolean {
  const delivered = Number(a.delivery === "delivered") - Number(b.delivery === "delivered");
  return delivered === 0 ? a.commit > b.commit : delivered > 0;
}

function isTip(state: EngineState, turn: TurnEntry): boolean {
  return lastTurn(segmentOf(state, turn.segment)) === turn;
}

function isOpenTip(state: EngineState, turn: TurnEntry): boolean {
  return isTip(state, turn) && segmentOf(state, turn.segment).closed === null;
}

function appendTo(state: EngineState, turn: EngineTurn, winner: TurnEntry, match: Point): Decision {
  const segment = segmentOf(state, winner.segment);
  const tokens = lineTokens(segment);
  return {
    kind: "append",
    segment: segment.number,
    prompt_keep: tokens,
    messages_keep: messagesKeep(winner, turn.messages),
    reason: "extends_tip",
    evidence: {
      match_tokens: match.depth,
      against_tokens: tokens,
      expected_id: null,
      actual_id: turn.prompt_ids[tokens] ?? null,
      kept_sampled: sampledWithin(state, { segment: segment.number, tokens }),
      ...changedContract(winner, turn),
      checkpoint_tokens: tokens,
      checkpoint_call_id: winner.call_id,
      against_call_id: winner.call_id,
    },
  };
}

/** Tools or encoding changed although the ids agree: recorded, never a split. */
function changedContract(winner: TurnEntry, turn: EngineTurn): Pick<DecisionEvidence, "cause" | "cause_detail"> {
  if (winner.renderer_contract !== turn.renderer_contract)
    return { cause: "contract_changed", cause_detail: "the renderer contract differs, the ids agree" };
  if (winner.tools_sha256 !== turn.tools_sha256)
    return { cause: "tools_changed", cause_detail: "the tools list differs, the ids agree" };
  return { cause: null, cause_detail: null };
}

function open(state: EngineState, turn: EngineTurn, found: Omit<OpeningFacts, "continued">): Decision {
  const { winner, match } = found;
  const closed = winner !== null && isTip(state, winner) ? segmentOf(state, winner.segment) : null;
  const continued = closed !== null && closed.closed !== null && !closed.continued ? closed : null;
  const opening = openingOf(state, turn, { ...found, continued });
  const line = continued ?? parentLine(state, match, preferred(state, opening, winner));
  const tokens = continued === null ? match.depth : lineTokens(continued);
  const against = opening.against ?? (line === null ? null : lastTurn(line));
  return {
    kind: winner === null ? "new_segment" : "branch",
    segment: state.next_segment,
    parent: line === null || tokens === 0 ? null : { segment: line.number, tokens },
    continues: continued === null ? null : { segment: continued.number, why: continued.closed! },
    prompt_keep: line === null ? 0 : tokens,
    messages_keep: against === null ? 0 : messagesKeep(against, turn.messages),
    reason: opening.reason,
    evidence: {
      match_tokens: match.depth,
      against_tokens: line === null ? 0 : lineTokens(line),
      expected_id: line !== null && match.depth < lineTokens(line) ? idAt(line.end.node, match.depth) : null,
      actual_id: turn.prompt_ids[match.depth] ?? null,
      kept_sampled: line === null ? 0 : sampledWithin(state, { segment: line.number, tokens: match.depth }),
      cause: opening.drift?.cause ?? null,
      cause_detail: opening.drift?.detail ?? null,
      checkpoint_tokens: winner?.end_tokens ?? 0,
      checkpoint_call_id: winner?.call_id ?? null,
      against_call_id: against?.call_id ?? null,
    },
  };
}

/** Segments that make the better parent where several lines share the whole match: the one that the messages continue, then the checkpoint's. */
function preferred(state: EngineState, opening: Opening, winner: TurnEntry | null): Segment | null {
  const turn = opening.against ?? winner;
  return turn === null ? null : segmentOf(state, turn.segment);
}

/** The line with the longest common prefix. Several: the preferred one, then delivered before undelivered by their last turns, then the latest commit. */
function parentLine(state: EngineState, match: Point, first: Segment | null): Segment | null {
  if (match.depth === 0) return null;
  const lines = linesThrough(match).map((number) => segmentOf(state, number));
  if (first !== null && lines.includes(first)) return first;
  return lines.reduce((best, line) => (beats(lastTurn(line), lastTurn(best)) ? line : best));
}

/** Ids on one side of a difference whose text is worth asking for. */
const TEXT_IDS_MAX = 4096;
/** Causes that ids and messages alone leave in doubt. */
const IN_DOUBT: ReadonlySet<string | null> = new Set([
  "retokenised",
  "template_rewrite",
  "tool_arguments_reserialised",
]);

/**
 * The ids whose texts would make the cause of a decision certain: the earlier line's from where its reply begins to where it ends, and the
 * prompt's at least as far. Null when nothing is in doubt.
 */
export function textsWanted(
  state: EngineState,
  turn: EngineTurn,
  decision: Decision,
): { earlier: Int32Array; now: Int32Array } | null {
  const { against_call_id, cause } = decision.evidence;
  const against = against_call_id == null ? undefined : state.turns.get(against_call_id);
  if (!IN_DOUBT.has(cause) || against === undefined) return null;
  const place = placeOfDifference(state, against, { ids: turn.prompt_ids, match: walk(state.tree, turn.prompt_ids) });
  if (place?.reply == null) return null;
  const start = Math.min(place.at, place.reply.start);
  const end = place.reply.end;
  if (end - start > TEXT_IDS_MAX) return null;
  return { earlier: place.line.slice(start, end), now: place.prompt.slice(start, end + (end - start) + RUN_ON_IDS) };
}

/** Ids of the prompt beyond twice the reply, so that the text of a reply in longer tokens is there as a whole. */
const RUN_ON_IDS = 64;
