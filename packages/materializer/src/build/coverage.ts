/** Coverage: every sampled id of a run is trained once or counted under one reason. Pure. */
import { TitoError } from "@tito/format";
import type { TrajectoryEvidence } from "../read/evidence.js";
import { INELIGIBLE_REASONS, MASK_REASONS, type MaskReason, type SpanReason } from "../recipe/reasons.js";
import type { BuiltTrajectory } from "./build.js";

export interface Coverage {
  captured_tokens: number;
  eligible_tokens: number;
  trained_tokens: number;
  /** Only reasons with tokens, in the order of the closed list. */
  masked: Partial<Record<MaskReason, number>>;
}

export function emptyCoverage(): Coverage {
  return { captured_tokens: 0, eligible_tokens: 0, trained_tokens: 0, masked: {} };
}

/**
 * Counts what the planned samples and the tokens outside of them hold, and compares it with what was captured.
 * Throws `internal` when they differ: that would be a defect of the build stage, never of the input.
 */
export function coverageOf(
  evidence: Pick<TrajectoryEvidence, "turns" | "trajectory_id">,
  built: BuiltTrajectory,
): Coverage {
  const counts = new Map<SpanReason, number>();
  const add = (reason: SpanReason, tokens: number) => counts.set(reason, (counts.get(reason) ?? 0) + tokens);
  for (const sample of built.samples) {
    for (const span of sample.spans) {
      if (span.kind === "action" && span.reason !== "shared_prefix") add(span.reason, span.end - span.start);
    }
  }
  for (const each of built.outside) add(each.reason, each.tokens);
  let captured = 0;
  for (const turn of evidence.turns) captured += turn.sampled_ids.length;
  const coverage = coverageFromCounts(captured, counts);
  assertCoverage(coverage, `trajectory ${evidence.trajectory_id}`, "internal");
  return coverage;
}

function coverageFromCounts(captured: number, counts: ReadonlyMap<SpanReason, number>): Coverage {
  const masked: Coverage["masked"] = {};
  let ineligible = 0;
  for (const reason of MASK_REASONS) {
    const tokens = counts.get(reason) ?? 0;
    if (tokens > 0) masked[reason] = tokens;
    if (INELIGIBLE_REASONS.has(reason)) ineligible += tokens;
  }
  return {
    captured_tokens: captured,
    eligible_tokens: captured - ineligible,
    trained_tokens: counts.get("trained") ?? 0,
    masked,
  };
}

/** captured = trained + Σ masked. `code` says whose fault a difference is: `internal` on write, `damaged` on read. */
export function assertCoverage(coverage: Coverage, where: string, code: "internal" | "damaged"): void {
  let sum = coverage.trained_tokens;
  for (const tokens of Object.values(coverage.masked)) sum += tokens;
  if (sum !== coverage.captured_tokens) {
    throw new TitoError(code, `${where}: ${coverage.captured_tokens} tokens captured, ${sum} trained or masked`);
  }
}

/** Sum over the trajectories of a run, or the runs of an output. */
export function addCoverage(a: Coverage, b: Coverage): Coverage {
  const masked: Coverage["masked"] = {};
  for (const reason of MASK_REASONS) {
    const tokens = (a.masked[reason] ?? 0) + (b.masked[reason] ?? 0);
    if (tokens > 0) masked[reason] = tokens;
  }
  return {
    captured_tokens: a.captured_tokens + b.captured_tokens,
    eligible_tokens: a.eligible_tokens + b.eligible_tokens,
    trained_tokens: a.trained_tokens + b.trained_tokens,
    masked,
  };
}
