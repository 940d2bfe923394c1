/** Stage "build": from lines and verdicts to planned samples, each sampled token owned by exactly one of them. Pure. */
import type { EvidenceTurn, Line, Piece, TrajectoryEvidence } from "../read/evidence.js";
import { clipPieces, Lines } from "../read/lines.js";
import type { BuildPolicy } from "../recipe/policy.js";
import type { MaskReason, SpanKind, SpanReason } from "../recipe/reasons.js";
import { realignLines } from "./realign.js";
import type { SelectedRange } from "./select.js";

/** `[start, end)` of a sample's tokens. For an action, `from` is the first of the turn's sampled ids that it shows. */
export interface PlannedSpan {
  start: number;
  end: number;
  kind: SpanKind;
  turn: EvidenceTurn;
  from: number;
  reason: SpanReason;
}

/** A sample before its arrays are made: the first `length` tokens of a line, and what each of them is. */
export interface PlannedSample {
  line: Line;
  /** Segments whose turns the sample holds, oldest first (more than one after a realignment). */
  segments: number[];
  length: number;
  spans: PlannedSpan[];
  /** Last turn on the sample. */
  last: EvidenceTurn;
  trained_tokens: number;
}

/** Sampled tokens that are in no sample, and why. */
export interface Outside {
  turn: number;
  tokens: number;
  reason: MaskReason;
}

export interface BuiltTrajectory {
  samples: PlannedSample[];
  outside: Outside[];
}

/** A candidate before ownership: the pieces of a sample and the own turn that it is ordered by. */
interface Cut {
  line: Line;
  segments: number[];
  pieces: Piece[];
  length: number;
  first: EvidenceTurn;
}

/** Plans all samples of a trajectory. `verdicts[turn]` are the ranges of `selectTurns`. */
export function buildSamples(
  evidence: TrajectoryEvidence,
  verdicts: readonly SelectedRange[][],
  policy: BuildPolicy,
): BuiltTrajectory {
  const lines = evidence.lines ?? new Lines(evidence);
  // One sample a turn has no split to save.
  const maxLost = policy.split === "turn" ? 0 : policy.realign_max_lost_tokens;
  const joined = realignLines(evidence, lines, { maxLost, maxSeqLen: policy.max_seq_len });
  const dropped = new Map<number, MaskReason>();
  for (const { overwritten } of joined) if (overwritten !== null) dropped.set(overwritten, "realign_overwritten");
  const cuts = joined.flatMap(({ line, segments, turns }) => cutLine({ line, segments, turns }, policy, dropped));
  cuts.sort((a, b) => a.first.turn - b.first.turn);
  const shown = new Map<number, number>();
  const samples = cuts.map((cut) => ownSpans(cut, verdicts, shown));
  return { samples, outside: leftOutside(evidence, verdicts, { shown, dropped }) };
}

/** Cuts a line at turn boundaries: whole, one sample a turn, or up to the last turn that fits. Never inside a turn. */
function cutLine(
  source: { line: Line; segments: number[]; turns: EvidenceTurn[] },
  policy: BuildPolicy,
  dropped: Map<number, MaskReason>,
): Cut[] {
  const { line, segments } = source;
  const ends = new Map<number, number>();
  for (const piece of line.pieces) if (piece.kind === "action") ends.set(piece.turn.turn, piece.end);
  const fits: EvidenceTurn[] = [];
  for (const turn of source.turns) {
    if (policy.max_seq_len === null || ends.get(turn.turn)! <= policy.max_seq_len) fits.push(turn);
    else if (!dropped.has(turn.turn)) dropped.set(turn.turn, "max_seq_len");
  }
  const boundaries = policy.split === "turn" ? fits : fits.slice(-1);
  return boundaries.map((turn) => {
    const length = ends.get(turn.turn)!;
    const first = policy.split === "turn" ? turn : fits[0]!;
    return { line, segments, pieces: clipPieces(line.pieces, length), length, first };
  });
}

/** Gives each action its verdict; ids that an earlier sample shows are `shared_prefix` here. */
function ownSpans(cut: Cut, verdicts: readonly SelectedRange[][], shown: Map<number, number>): PlannedSample {
  const spans: PlannedSpan[] = [];
  let trained = 0;
  for (const piece of cut.pieces) {
    if (piece.kind !== "action") {
      spans.push(spanOf(piece, piece.start, piece.end, piece.kind));
      continue;
    }
    const tokens = piece.end - piece.start;
    const before = Math.min(shown.get(piece.turn.turn) ?? 0, tokens);
    if (before > 0) spans.push(spanOf(piece, piece.start, piece.start + before, "shared_prefix"));
    for (const range of verdicts[piece.turn.turn]!) {
      const start = Math.max(range.start, before);
      const end = Math.min(range.end, tokens);
      if (start >= end) continue;
      spans.push(spanOf(piece, piece.start + start, piece.start + end, range.reason ?? "trained"));
      if (range.reason === null) trained += end - start;
    }
    shown.set(piece.turn.turn, Math.max(tokens, shown.get(piece.turn.turn) ?? 0));
  }
  const last = cut.pieces[cut.pieces.length - 1]!.turn;
  return { line: cut.line, segments: cut.segments, length: cut.length, spans, last, trained_tokens: trained };
}

/** The part `[start, end)` of a piece. */
function spanOf(piece: Piece, start: number, end: number, reason: SpanReason): PlannedSpan {
  return { start, end, kind: piece.kind, turn: piece.turn, from: start - piece.start, reason };
}

/** Sampled ids that no sample shows: given up by a realignment, too long, overtaken on their line, or unreadable. */
function leftOutside(
  evidence: TrajectoryEvidence,
  verdicts: readonly SelectedRange[][],
  state: { shown: Map<number, number>; dropped: Map<number, MaskReason> },
): Outside[] {
  const outside: Outside[] = [];
  for (const turn of evidence.turns) {
    const shown = state.shown.get(turn.turn) ?? 0;
    const byReason = new Map<MaskReason, number>();
    for (const range of verdicts[turn.turn]!) {
      const tokens = range.end - Math.max(range.start, shown);
      if (tokens <= 0) continue;
      const reason = range.reason ?? state.dropped.get(turn.turn) ?? "off_line";
      byReason.set(reason, (byReason.get(reason) ?? 0) + tokens);
    }
    for (const [reason, tokens] of byReason) outside.push({ turn: turn.turn, tokens, reason });
  }
  return outside;
}
