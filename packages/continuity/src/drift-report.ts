/** What drift costs: turns and tokens per cause. */
import type { DecisionEvidence, DecisionKind } from "@tito/format";

export interface ReportedTurn {
  decision: { kind: DecisionKind; reason: string; evidence: DecisionEvidence };
  prompt_tokens: number;
}

export interface DriftCost {
  turns: number;
  /** Ids of the earlier lines that the drifted prompts no longer contain. */
  lost_tokens: number;
  /** Prompt ids behind the match: what the engine had to read again. */
  reread_tokens: number;
}

export interface DriftReport {
  turns: number;
  decisions: Record<DecisionKind, number>;
  /** Reason → turns. */
  reasons: Map<string, number>;
  /** Cause → cost, of the turns that have a cause. */
  causes: Map<string, DriftCost>;
}

/** Counts over the turns of one or many trajectories; entries are in the order of their names, so that equal turns give equal reports. */
export function driftReport(turns: Iterable<ReportedTurn>): DriftReport {
  const decisions: Record<DecisionKind, number> = { append: 0, branch: 0, new_segment: 0 };
  const reasons = new Map<string, number>();
  const causes = new Map<string, DriftCost>();
  let count = 0;
  for (const turn of turns) {
    const { kind, reason, evidence } = turn.decision;
    count += 1;
    decisions[kind] += 1;
    reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
    if (evidence.cause === null) continue;
    const cost = causes.get(evidence.cause) ?? { turns: 0, lost_tokens: 0, reread_tokens: 0 };
    cost.turns += 1;
    cost.lost_tokens += evidence.against_tokens - Math.min(evidence.match_tokens, evidence.against_tokens);
    // a damaged turn whose prompt could not be rebuilt counts nothing
    cost.reread_tokens += kind === "append" ? 0 : Math.max(0, turn.prompt_tokens - evidence.match_tokens);
    causes.set(evidence.cause, cost);
  }
  return { turns: count, decisions, reasons: sorted(reasons), causes: sorted(causes) };
}

function sorted<V>(map: Map<string, V>): Map<string, V> {
  return new Map([...map].sort(([a], [b]) => (a < b ? -1 : 1)));
}
