/** Where on an earlier turn's line a prompt leaves it: the message, and whether the policy sampled the id or a template printed it. */
import { climb, idsTo, type Point, type TreeNode } from "./prefix-tree.js";
import { recognisable } from "./same-identity.js";
import { type EngineState, pointOnLine, segmentOf, type TurnEntry } from "./state.js";

/** The first id of an earlier turn's line that a prompt does not repeat, and what surrounds it. */
export interface IdPlace {
  /** All ids of the earlier turn's line: its prompt, then what it sampled. */
  line: Int32Array;
  prompt: Int32Array;
  /** Index of the first difference in both. */
  at: number;
  /** First and last message that the id can belong to, counted in the earlier turn's messages and its reply. */
  from: number;
  to: number;
  /** Sampled ids of message `to` that the place lies in or directly in front of; null: the template printed all ids around it. */
  reply: { start: number; end: number } | null;
}

/** A stretch of a line that the policy sampled as message `message` of the line's last turn. */
interface Span {
  message: number;
  start: number;
  end: number;
  /** The line leaves the turn before its last sampled id: the rest of the message was printed by a template. */
  cut: boolean;
}

/** Finds the place by the ids alone. Null when the prompt repeats the whole line. Work in the turns of the line. */
export function placeOfDifference(
  state: EngineState,
  base: TurnEntry,
  prompt: { ids: Int32Array; match: Point },
): IdPlace | null {
  const end = pointOnLine(state, { segment: base.segment, tokens: base.end_tokens });
  const at = sharedDepth(prompt.match, end);
  if (at >= base.end_tokens) return null;
  const spans = sampledSpans(state, base);
  const index = spans.findIndex((span) => at < span.end);
  const span = index < 0 ? null : spans[index]!;
  const before = index < 0 ? spans.at(-1) : spans[index - 1];
  const first = before === undefined ? 0 : before.message + (before.cut ? 0 : 1);
  const inside = span !== null && at >= span.start;
  return {
    line: idsTo(end),
    prompt: prompt.ids,
    at,
    from: inside ? span.message : first,
    // The header of the next reply stands in the context before it.
    to: span === null ? base.history.length : span.message,
    reply: span === null ? null : { start: span.start, end: span.end },
  };
}

/** Length of the path that two points share. */
function sharedDepth(a: Point, b: Point): number {
  const path = new Set<TreeNode>();
  for (let node: TreeNode | null = climb(b).node; node !== null; node = node.parent) path.add(node);
  const { node } = climb(a);
  if (path.has(node)) return Math.min(a.depth, b.depth);
  let up: TreeNode = node;
  while (!path.has(up)) up = up.parent!;
  return Math.min(up.to, b.depth);
}

/** What the policy sampled of the line up to a turn's end, in order. A turn whose reply is not in the history, as an aborted one, is context. */
function sampledSpans(state: EngineState, base: TurnEntry): Span[] {
  const out: Span[] = [];
  let limit = base.end_tokens;
  for (let segment = segmentOf(state, base.segment); ; ) {
    for (const turn of segment.turns.toReversed()) {
      if (turn.prompt_tokens >= limit || turn.commit > base.commit || !isInHistory(turn, base)) continue;
      const end = Math.min(turn.end_tokens, limit);
      out.unshift({ message: turn.history.length, start: turn.prompt_tokens, end, cut: end < turn.end_tokens });
    }
    if (segment.parent === null) return out;
    limit = Math.min(limit, segment.parent.tokens);
    segment = segmentOf(state, segment.parent.segment);
  }
}

function isInHistory(turn: TurnEntry, base: TurnEntry): boolean {
  if (turn === base) return true;
  const at = turn.history.length;
  for (let part: TurnEntry["history"] | null = base.history; part !== null; part = part.base) {
    if (at >= part.length) return false;
    if (at >= part.keep) return recognisable(turn.reply, part.own[at - part.keep]!);
  }
  return false;
}
