/** Why a segment opens: one reason of the closed list, and the drift behind it. Never changes where it opens. */
import type { Drift, DriftCause } from "./drift-causes.js";
import { explainDrift } from "./explain-drift.js";
import { summaryIn } from "./explain-misalignment.js";
import { rulesFor } from "./harness-rules.js";
import { historyMessages } from "./history.js";
import { placeOfDifference } from "./id-place.js";
import { deepestMarks, linesThrough, type Point } from "./prefix-tree.js";
import type { OpeningReason } from "./reasons.js";
import { containedReply, rewrittenReply, sameConversation } from "./relation.js";
import type { DifferenceTexts } from "./reply-part.js";
import { type EngineState, lastTurn, type Segment, segmentOf, type TurnEntry } from "./state.js";
import type { EngineTurn } from "./types.js";

/** Leading messages of a request in which a summary is looked for when it contains no earlier reply. */
const SUMMARY_MESSAGES = 12;

/** Turns that are tried when the request contains no reply that is known, latest first. */
const CANDIDATES_MAX = 16;

export interface Opening {
  reason: OpeningReason;
  drift: Drift | null;
  /** The turn that the request continues by its messages; null when none does. */
  against: TurnEntry | null;
}

export interface OpeningFacts {
  /** The turn of the winning checkpoint, null when no checkpoint is a prefix. */
  winner: TurnEntry | null;
  /** The closed segment whose tip the prompt extends, not yet continued. */
  continued: Segment | null;
  match: Point;
  /** The texts around the first difference, where the caller can decode ids. */
  texts: DifferenceTexts | null;
}

/** The first rule that holds decides; docs/continuity.md lists them in this order. */
export function openingOf(state: EngineState, turn: EngineTurn, facts: OpeningFacts): Opening {
  const { winner, continued } = facts;
  const plain = (reason: OpeningReason, against = winner): Opening => ({ reason, drift: null, against });
  if (continued !== null) return plain(continued.closed === "parked" ? "parked" : "recovered");
  if (state.turns.size === 0) return plain("first_turn");
  const repeated = turn.retry_of === null ? undefined : state.turns.get(turn.retry_of);
  if (repeated !== undefined) return plain("retry", repeated);
  const same = samePrompt(state, turn, facts.match);
  if (same !== null) return plain("identical_prompt", same);
  const drifted = driftedFrom(state, turn, facts);
  if (drifted !== null) return drifted;
  if (winner === null) return plain("new_lineage");
  return plain(forkReason(state, turn, winner));
}

function samePrompt(state: EngineState, turn: EngineTurn, match: Point): TurnEntry | null {
  if (match.depth !== turn.prompt_ids.length) return null;
  const prompts = deepestMarks(match, "prompts");
  if (prompts === null || prompts.depth !== match.depth) return null;
  return state.turns.get(prompts.call_ids[prompts.call_ids.length - 1]!)!;
}

/** The checkpoint is interior and the messages continue nothing behind it: the conversation forks there. */
function forkReason(state: EngineState, turn: EngineTurn, winner: TurnEntry): OpeningReason {
  const followers = state.followers.get(winner.call_id) ?? [];
  const { arrived_after } = turn;
  if (arrived_after !== null && followers.some((follower) => follower.commit > arrived_after)) return "parallel_call";
  return followers.some((follower) => follower.checkpointable) ? "sibling" : "after_incomplete";
}

/** The messages continue a turn that the ids do not extend. */
function driftedFrom(state: EngineState, turn: EngineTurn, facts: OpeningFacts): Opening | null {
  const contained = containedReply(state, turn.messages);
  const base =
    [contained, rewrittenBase(state, turn, facts)].find((found) => found !== null && isBehind(found, facts.winner)) ??
    (contained === null ? summarised(state, turn) : null);
  if (base === null || !isBehind(base, facts.winner)) return null;
  if (!base.checkpointable && facts.winner !== null)
    return { reason: "after_incomplete", drift: null, against: facts.winner };
  const found = explainDrift({
    previous: historyMessages(base.history),
    reply: base.reply,
    next: turn.messages,
    tools_changed: base.tools_sha256 !== turn.tools_sha256,
    contract_changed: base.renderer_contract !== turn.renderer_contract,
    rules: rulesFor(turn.harness),
    summaries: state.summaries,
    place: placeOfDifference(state, base, { ids: turn.prompt_ids, match: facts.match }),
    texts: facts.texts,
  });
  return { reason: reasonOf(found.cause), drift: found, against: base };
}

/** True when a turn holds more than what the prompt starts with. */
function isBehind(turn: TurnEntry, winner: TurnEntry | null): boolean {
  return winner === null || (turn !== winner && turn.end_tokens > winner.end_tokens);
}

/** Causes that are reasons of their own; all others are `drift`. */
function reasonOf(cause: DriftCause): OpeningReason {
  switch (cause) {
    case "compaction":
    case "history_truncated":
    case "tools_changed":
    case "contract_changed":
      return cause;
    default:
      return "drift";
  }
}

/** The reply is not recognisable in the request, yet the request begins with all that came before it. */
function rewrittenBase(state: EngineState, turn: EngineTurn, facts: OpeningFacts): TurnEntry | null {
  const followers = facts.winner === null ? [] : (state.followers.get(facts.winner.call_id) ?? []);
  const shared = linesThrough(facts.match).map((line) => lastTurn(segmentOf(state, line)));
  const latest = [...new Set([...followers, ...shared])].sort((a, b) => b.commit - a.commit).slice(0, CANDIDATES_MAX);
  for (const candidate of latest) {
    if (turn.arrived_after !== null && candidate.commit > turn.arrived_after) continue;
    const how = rewrittenReply(candidate, turn.messages);
    if (how === "rewritten" || (how === "dropped" && candidate.delivery === "delivered")) return candidate;
  }
  return null;
}

/** No earlier reply is left: a summary of the lane's last turn, or the same conversation from its start under another prompt. */
function summarised(state: EngineState, turn: EngineTurn): TurnEntry | null {
  const last = state.last_of_lane.get(turn.lane);
  if (last === undefined) return null;
  const summary = summaryIn(turn.messages.slice(0, SUMMARY_MESSAGES), rulesFor(turn.harness), state.summaries);
  return summary !== null || sameConversation(last, turn.messages) ? last : null;
}
