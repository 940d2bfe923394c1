/**
 * Realignment: a policy that gives up a few sampled tokens to save a split (contracts: `build.realign_max_lost_tokens`). Pure.
 * Where a new segment's match with its parent ends inside the parent's last sampled span, after at least one kept token,
 * and at most `maxLost` tokens of the checkpoint are lost, both become one sample.
 */
import { realign } from "@tito/continuity";
import type { EvidenceSegment, EvidenceTurn, Line, TokenLines, TrajectoryEvidence } from "../read/evidence.js";

/** A line that becomes samples: the last segment of a chain of realigned segments. */
export interface JoinedLine {
  line: Line;
  segments: number[];
  /** Turns that belong to this chain, in order. */
  turns: EvidenceTurn[];
  /** Turn of which a realignment cut off sampled tokens, null when none. */
  overwritten: number | null;
}

/** How far a realignment may go: tokens that it may lose, and the length in which the first turn behind it must fit (null: any). */
export interface RealignBounds {
  maxLost: number;
  maxSeqLen: number | null;
}

/** Every segment that holds a turn becomes one line, or part of the line of the segment that realigns with it. */
export function realignLines(evidence: TrajectoryEvidence, lines: TokenLines, bounds: RealignBounds): JoinedLine[] {
  const successor = new Map<number, number>();
  const joinsParent = new Map<number, number>();
  if (bounds.maxLost > 0) {
    for (const segment of evidence.segments) {
      if (segment.parent === null || successor.has(segment.parent.segment)) continue;
      if (!joins(evidence, lines, { segment, bounds })) continue;
      successor.set(segment.parent.segment, segment.segment);
      joinsParent.set(segment.segment, segment.parent.segment);
    }
  }
  const joined: JoinedLine[] = [];
  for (const segment of evidence.segments) {
    if (segment.turns.every((turn) => turn.damage !== null)) continue;
    const line = lines.of(segment.segment);
    if (line.turns.length === 0) continue;
    const overwritten = successor.has(segment.segment) ? line.turns[line.turns.length - 1]!.turn : null;
    if (overwritten !== null) {
      joined.push({ line, segments: [], turns: [], overwritten });
      continue;
    }
    const chain = [segment.segment];
    for (let up = joinsParent.get(segment.segment); up !== undefined; up = joinsParent.get(up)) chain.unshift(up);
    const turns = chain.flatMap((number) => lines.of(number).turns);
    joined.push({ line, segments: chain, turns, overwritten: null });
  }
  return joined;
}

/**
 * True when the shared rule holds for this pair, nothing else goes on behind the match, and the new segment's first turn fits in a sample:
 * else no split would be saved, and the sample would end inside the turn that was given up.
 */
function joins(
  evidence: TrajectoryEvidence,
  lines: TokenLines,
  pair: { segment: EvidenceSegment; bounds: RealignBounds },
): boolean {
  const { segment, bounds } = pair;
  if (segment.parent === null || segment.turns.every((turn) => turn.damage !== null)) return false;
  const parent = lines.of(segment.parent.segment);
  const piece = parent.pieces[parent.pieces.length - 1];
  if (piece?.kind !== "action" || !parent.turns.includes(piece.turn)) return false;
  const match_tokens = segment.parent.tokens;
  if (realign({ last_sampled: piece, match_tokens, max_lost_tokens: bounds.maxLost }) === null) return false;
  if (!fits(lines.of(segment.segment), bounds.maxSeqLen)) return false;
  return !evidence.segments.some(
    (other) => other !== segment && other.parent?.segment === parent.segment && other.parent.tokens > match_tokens,
  );
}

/** The first turn of a line's own segment ends within the length. */
function fits(line: Line, maxSeqLen: number | null): boolean {
  const first = line.pieces.find((piece) => piece.kind === "action" && piece.turn === line.turns[0]);
  return maxSeqLen === null || (first !== undefined && first.end <= maxSeqLen);
}
