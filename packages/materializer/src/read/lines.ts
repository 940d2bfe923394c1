/** Token lines: which call put each token of a segment where it is. Pure. */
import { TitoError } from "@tito/format";
import type { EvidenceSegment, EvidenceTurn, Line, Piece } from "./evidence.js";

/** Cuts a list of pieces at `end` tokens. */
export function clipPieces(pieces: readonly Piece[], end: number): Piece[] {
  const out: Piece[] = [];
  for (const piece of pieces) {
    if (piece.start >= end) break;
    out.push(piece.end <= end ? piece : { ...piece, end });
  }
  return out;
}

/** Lines of one trajectory by segment number; built on demand, parents first. */
export class Lines {
  private readonly segments = new Map<number, EvidenceSegment>();
  private readonly built = new Map<number, Line>();

  constructor(evidence: { segments: readonly EvidenceSegment[] }) {
    for (const segment of evidence.segments) this.segments.set(segment.segment, segment);
  }

  /**
   * The line of a segment. Turns that damage cut off (`damage` set) put nothing on it.
   * Throws `damaged` when the segment, or one that it refers to, does not exist or a reference runs in a circle.
   */
  of(segment: number): Line {
    const known = this.built.get(segment);
    if (known) return known;
    const chain = this.ancestry(segment);
    for (const each of chain.reverse()) {
      if (!this.built.has(each.segment)) this.built.set(each.segment, this.build(each));
    }
    return this.built.get(segment)!;
  }

  private ancestry(segment: number): EvidenceSegment[] {
    const chain: EvidenceSegment[] = [];
    let next: number | null = segment;
    while (next !== null && !this.built.has(next)) {
      const current = this.segments.get(next);
      if (!current || chain.includes(current)) {
        throw new TitoError("damaged", `segment ${next} is referred to and cannot be read`);
      }
      chain.push(current);
      next = current.parent === null ? null : current.parent.segment;
    }
    return chain;
  }

  private build(segment: EvidenceSegment): Line {
    const parent = segment.parent === null ? null : this.built.get(segment.parent.segment)!;
    const inherited = segment.parent === null ? 0 : segment.parent.tokens;
    if (parent && parent.length < inherited) {
      throw new TitoError(
        "damaged",
        `segment ${segment.segment} shares ${inherited} tokens with segment ${parent.segment}, which holds ${parent.length}`,
      );
    }
    let pieces = parent ? clipPieces(parent.pieces, inherited) : [];
    let length = inherited;
    const parts: { at: number; ids: Int32Array }[] = [];
    for (const turn of segment.turns) {
      if (turn.damage !== null) continue;
      if (turn.prompt_keep < length) pieces = clipPieces(pieces, turn.prompt_keep);
      length = turn.prompt_keep;
      length = pushPrompt(pieces, turn, length);
      parts.push({ at: turn.prompt_keep, ids: turn.prompt_suffix }, { at: length, ids: turn.sampled_ids });
      length = push(pieces, { start: length, end: length + turn.sampled_ids.length, kind: "action", turn });
    }
    const tokens = new Int32Array(length);
    if (parent) tokens.set(parent.tokens.subarray(0, Math.min(inherited, length)));
    for (const part of parts) {
      if (part.at < length) tokens.set(part.ids.subarray(0, length - part.at), part.at);
    }
    const own = new Set(segment.turns);
    const turns = [...new Set(pieces.filter((p) => p.kind === "action" && own.has(p.turn)).map((p) => p.turn))];
    return {
      segment: segment.segment,
      pieces,
      length,
      inherited: Math.min(inherited, length),
      turns,
      tokens,
      proven: new Map(),
    };
  }
}

function push(pieces: Piece[], piece: Piece): number {
  if (piece.end > piece.start) pieces.push(piece);
  return piece.end;
}

/** What came before any sampled token is the prompt; after that it is context, and a junction's own ids are seam. */
function pushPrompt(pieces: Piece[], turn: EvidenceTurn, start: number): number {
  const seam = Math.min(turn.seam_tokens, turn.prompt_suffix.length);
  const afterSeam = push(pieces, { start, end: start + seam, kind: "seam", turn });
  const sampled = pieces.some((piece) => piece.kind === "action");
  const end = start + turn.prompt_suffix.length;
  return push(pieces, { start: afterSeam, end, kind: sampled ? "context" : "prompt", turn });
}
