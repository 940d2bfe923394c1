/** Marks turns whose exact prompt cannot be rebuilt, or is not the one that was recorded. Pure. */
import { createHash } from "node:crypto";
import type { EvidenceSegment } from "./evidence.js";
import { Lines } from "./lines.js";

/**
 * Sets `damage` on turns that must not train because of what surrounds them. A turn that builds on a damaged one is damaged too.
 * Each round marks at least one more turn, so the rounds end. Returns the lines of the last one, in which every prompt agreed.
 * `areProven`: nothing is missing and every prompt was found to have its digest already; then nothing is hashed again.
 */
export function markDamage(segments: readonly EvidenceSegment[], areProven = false): Lines {
  for (;;) {
    markUnresolved(segments);
    const lines = new Lines({ segments });
    if (!markMismatches(segments, lines, areProven)) return lines;
  }
}

/** Ids that a prompt keeps are not there: a frame, a file or a parent is missing. */
function markUnresolved(segments: readonly EvidenceSegment[]): void {
  const lengths = new Map<number, number>();
  for (const segment of segments) {
    const shared = segment.parent === null ? 0 : segment.parent.tokens;
    const reachable = segment.parent === null || (lengths.get(segment.parent.segment) ?? -1) >= shared;
    let length = reachable ? shared : -1;
    for (const turn of segment.turns) {
      if (turn.damage !== null) continue;
      if (turn.prompt_keep > length) turn.damage = "the ids that its prompt builds on are not there";
      else length = turn.prompt_keep + turn.prompt_suffix.length + turn.sampled_ids.length;
    }
    lengths.set(segment.segment, length);
  }
}

/** Compares every prompt with its recorded digest, one pass over each line. True when a turn was marked. */
function markMismatches(segments: readonly EvidenceSegment[], lines: Lines, areProven: boolean): boolean {
  let marked = false;
  for (const segment of segments) {
    if (segment.turns.every((turn) => turn.damage !== null)) continue;
    const { tokens, pieces, proven } = lines.of(segment.segment);
    const own = new Set(segment.turns);
    const hash = createHash("sha256");
    for (const piece of pieces) {
      if (piece.kind === "action" && own.has(piece.turn)) {
        if (areProven || Buffer.compare(hash.copy().digest(), piece.turn.prompt_sha256) === 0)
          proven.set(piece.turn, piece.start);
        else {
          piece.turn.damage = "its prompt ids have another digest than when they were recorded";
          marked = true;
        }
      }
      if (!areProven)
        hash.update(new Uint8Array(tokens.buffer, tokens.byteOffset + piece.start * 4, (piece.end - piece.start) * 4));
    }
  }
  return marked;
}
