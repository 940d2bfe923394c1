/** Realignment: one definition of the rule, shared by those who record drift and those who may join what it split. Capture never realigns. */

export interface RealignInput {
  /** The last sampled span of the parent's line, as it ended up: `[start, end)` on the line. `end` is the length of its checkpoint. */
  last_sampled: { start: number; end: number };
  /** Length of the new segment's match with the parent's line. */
  match_tokens: number;
  /** `build.realign_max_lost_tokens`; 0 joins nothing. */
  max_lost_tokens: number;
}

export interface Realignment {
  /** The joined line goes on from here with the new segment's ids. */
  at: number;
  /** Sampled ids of the span that stay. */
  kept: number;
  /** Sampled ids that are given up; they count as `realign_overwritten`. */
  lost: number;
}

/**
 * Joins a segment to its parent where the match ends inside the parent's last sampled span, after at least one kept sampled token,
 * and what is lost of the checkpoint stays within the bound. Null: two samples.
 * The rule looks at one pair; of several segments that could join one parent, only one with the longest match may, and of equal ones the first.
 */
export function realign(input: RealignInput): Realignment | null {
  const { last_sampled, match_tokens, max_lost_tokens } = input;
  const kept = match_tokens - last_sampled.start;
  const lost = last_sampled.end - match_tokens;
  if (kept < 1 || lost < 1 || lost > max_lost_tokens) return null;
  return { at: match_tokens, kept, lost };
}
