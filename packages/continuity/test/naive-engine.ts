/** The rules of continuity in the plainest form: whole lines, linear search, ids only. The oracle for the real engine. */

export interface NaiveTurn {
  call_id: string;
  commit: number;
  segment: number;
  end: number;
  /** Prompt and sampled ids, whole. */
  ids: number[];
  prompt: number;
  checkpointable: boolean;
  delivered: boolean;
}

export interface NaiveDecision {
  kind: "append" | "branch" | "new_segment";
  /** Segment to append to; null for an opening. */
  segment: number | null;
  checkpoint: string | null;
  match: number;
  /** Segments that share the whole match. */
  lines: number[];
}

export class NaiveEngine {
  readonly turns: NaiveTurn[] = [];
  readonly lines = new Map<number, number[]>();

  decide(prompt: readonly number[]): NaiveDecision {
    const winner = this.turns
      .filter((turn) => turn.checkpointable && startsWith(prompt, turn.ids))
      .sort((a, b) => b.end - a.end || Number(b.delivered) - Number(a.delivered) || b.commit - a.commit)[0];
    const lengths = [...this.lines].map(([segment, line]) => [segment, prefix(prompt, line)] as const);
    const match = Math.max(0, ...lengths.map(([, length]) => length));
    const lines = lengths.filter(([, length]) => length === match && match > 0).map(([segment]) => segment);
    const checkpoint = winner?.call_id ?? null;
    if (winner === undefined) return { kind: "new_segment", segment: null, checkpoint, match, lines };
    const last = this.turns.filter((turn) => turn.segment === winner.segment).at(-1);
    if (last === winner) return { kind: "append", segment: winner.segment, checkpoint, match, lines };
    return { kind: "branch", segment: null, checkpoint, match, lines };
  }

  commit(turn: Omit<NaiveTurn, "commit" | "end">): void {
    this.turns.push({ ...turn, commit: this.turns.length + 1, end: turn.ids.length });
    this.lines.set(turn.segment, turn.ids);
  }

  /** Sampled ids of a segment's line inside its first `tokens`. */
  sampledWithin(
    segment: number,
    tokens: number,
    parents: ReadonlyMap<number, { segment: number; tokens: number } | null>,
  ): number {
    const parent = parents.get(segment) ?? null;
    let sampled = parent === null ? 0 : this.sampledWithin(parent.segment, Math.min(tokens, parent.tokens), parents);
    for (const turn of this.turns)
      if (turn.segment === segment) sampled += Math.max(0, Math.min(tokens, turn.end) - turn.prompt);
    return sampled;
  }
}

function prefix(a: readonly number[], b: readonly number[]): number {
  let i = 0;
  while (i < a.length && i < b.length && a[i] === b[i]) i++;
  return i;
}

function startsWith(long: readonly number[], short: readonly number[]): boolean {
  return short.length <= long.length && prefix(long, short) === short.length;
}
