/** Stage "select": may a turn's sampled ids train, and if not, why? First match decides. Pure. */
import { CUT_SHORT, type EvidenceTurn, type TrajectoryEvidence } from "../read/evidence.js";
import { versionNumbers } from "../read/versions.js";
import type { SelectPolicy } from "../recipe/policy.js";
import type { MaskReason } from "../recipe/reasons.js";
import { behaviourDoubt } from "./sampling.js";

/** `[start, end)` of a turn's sampled ids under one verdict; null = may train. Ranges cover all sampled ids in order. */
export interface SelectedRange {
  start: number;
  end: number;
  reason: MaskReason | null;
}

export interface SelectContext {
  policy: SelectPolicy;
  /** Newest weight version that counts as age 0, null when no version is a number or no age limit is set. */
  newestVersion: number | null;
}

/** Verdict on every turn of a trajectory, by turn number. */
export function selectTurns(evidence: TrajectoryEvidence, context: SelectContext): SelectedRange[][] {
  const contained = turnsInLaterPrompts(evidence);
  const retried = retriedTurns(evidence);
  const uncounted = uncountedTurns(evidence);
  return evidence.turns.map((turn) =>
    selectTurn(
      turn,
      {
        contained: contained.has(turn.turn),
        retried: retried.has(turn.turn),
        uncounted: uncounted.has(turn.turn),
        imported: evidence.imported,
      },
      context,
    ),
  );
}

/** What the rest of the trajectory says about a turn. */
interface Surroundings {
  contained: boolean;
  retried: boolean;
  /** Its engine tells counts at other times, and did not here. */
  uncounted: boolean;
  imported: boolean;
}

function selectTurn(turn: EvidenceTurn, around: Surroundings, context: SelectContext): SelectedRange[] {
  const whole = { start: 0, end: turn.sampled_ids.length };
  const reason =
    captureReason(turn, around, context.policy) ??
    deliveryReason(turn, around, context.policy) ??
    laneReason(turn, context.policy);
  if (reason !== null) return [{ ...whole, reason }];
  const byVersion = versionRanges(turn, context);
  return context.policy.logprob_missing === "token" ? splitAtGaps(turn, byVersion) : byVersion;
}

/** What was captured cannot be trusted as the policy's own behaviour. */
function captureReason(turn: EvidenceTurn, around: Surroundings, policy: SelectPolicy): MaskReason | null {
  const { missing, impossible } = checkLogprobs(turn);
  const damage = turn.damage !== null || turn.defects.some((defect) => !isNamedDefect(defect));
  if (damage || impossible || around.uncounted) return "capture_damage";
  if (missing === "all" || (missing === "some" && policy.logprob_missing === "turn")) return "logprob_missing";
  if (policy.logprob_not_behaviour === "mask" && behaviourDoubt(turn, policy.sampling_defaults) !== null)
    return "logprob_not_behaviour";
  if (turn.defects.includes("client_gone")) return "client_gone";
  if (isCutShort(turn)) return "aborted";
  return policy.finish_unknown === "mask" && !isFinishKnown(turn, around) ? "finish_unknown" : null;
}

function isCutShort(turn: EvidenceTurn): boolean {
  const { finish_reason, defects } = turn;
  return finish_reason === "abort" || finish_reason === "error" || defects.some((defect) => CUT_SHORT.has(defect));
}

/** The reply says in no known words why it ended. */
const UNFINISHED: ReadonlySet<string> = new Set(["finish_missing", "finish_unknown"]);

/** Defects that have a reason of their own, or that take nothing from the ids (an engine that counts nothing); any other defect is damage. */
function isNamedDefect(defect: string): boolean {
  return (
    CUT_SHORT.has(defect) ||
    UNFINISHED.has(defect) ||
    defect === "client_gone" ||
    defect === "usage_missing" ||
    defect === "logprobs_missing" ||
    defect === "logprob_not_finite"
  );
}

/** A log may have no such field at all; every reply of an engine has one. */
function isFinishKnown(turn: EvidenceTurn, { imported }: Surroundings): boolean {
  if (turn.defects.some((defect) => UNFINISHED.has(defect))) return false;
  return turn.finish_reason !== "unknown" || imported;
}

/**
 * A log probability above this is impossible. Engines compute in float32: the probability of a token that is nearly certain can come out a few
 * units in the last place (6e-8 each) above 1, and its logarithm as far above 0. Anything larger is no log probability (a logit, say).
 */
const LOGPROB_MAX = 1e-6;

/** An impossible value is said of the whole turn: whatever the engine sent there, its other values are no better known. */
function checkLogprobs(turn: EvidenceTurn): { missing: "none" | "some" | "all"; impossible: boolean } {
  const { logprobs } = turn;
  if (logprobs === null || logprobs.length !== turn.sampled_ids.length) return { missing: "all", impossible: false };
  let missing = 0;
  let highest = Number.NEGATIVE_INFINITY;
  // Every token passes here: an index loop, because an iterator costs five times as much.
  for (let i = 0; i < logprobs.length; i += 1) {
    const value = logprobs[i]!;
    if (value > highest) highest = value;
    if (!Number.isFinite(value)) missing += 1;
  }
  const impossible = highest > LOGPROB_MAX;
  if (missing === 0) return { missing: "none", impossible };
  return { missing: missing === logprobs.length ? "all" : "some", impossible };
}

/**
 * Turns without the engine's count of their ids although this engine tells counts in other turns: a piece of the reply was lost together
 * with the count that would have shown the hole. Replies that were cut short never came to their count, and have their own reason.
 */
function uncountedTurns(evidence: Pick<TrajectoryEvidence, "turns">): Set<number> {
  const counts = (turn: EvidenceTurn) => [turn.usage.prompt_tokens, turn.usage.completion_tokens];
  const told = new Map<string, boolean[]>();
  for (const turn of evidence.turns) {
    const before = told.get(turn.engine) ?? [false, false];
    told.set(
      turn.engine,
      counts(turn).map((value, i) => before[i]! || value !== null),
    );
  }
  const isUncounted = (turn: EvidenceTurn) =>
    !isCutShort(turn) &&
    !turn.defects.includes("client_gone") &&
    counts(turn).some((value, i) => value === null && told.get(turn.engine)![i]!);
  return new Set(evidence.turns.filter(isUncounted).map((turn) => turn.turn));
}

function deliveryReason(
  turn: EvidenceTurn,
  later: Pick<Surroundings, "contained" | "retried">,
  policy: SelectPolicy,
): MaskReason | null {
  if (later.contained) return null;
  if (later.retried && policy.retry_orphan === "mask") return "retry_orphan";
  if (turn.delivery === "failed" && policy.undelivered === "mask") return "undelivered";
  if (turn.delivery === "unknown" && policy.delivery_unknown === "mask") return "delivery_unknown";
  return null;
}

function laneReason(turn: EvidenceTurn, policy: SelectPolicy): MaskReason | null {
  if (turn.lane.startsWith("aux:") && policy.lanes.auxiliary === "mask") return "auxiliary";
  if (turn.lane.startsWith("sub:") && policy.lanes.sub_agent === "mask") return "sub_agent";
  if (turn.lane === "compaction" && policy.lanes.compaction === "mask") return "compaction";
  if (turn.lane === "main" && policy.lanes.main === "mask") return "main_lane";
  if (turn.finish_reason === "length" && policy.length === "mask") return "length";
  if (turn.malformed && policy.malformed === "mask") return "malformed";
  return null;
}

/** Weight-version spans older than the limit; ids that no span names count as `version_unknown`. */
function versionRanges(turn: EvidenceTurn, context: SelectContext): SelectedRange[] {
  const end = turn.sampled_ids.length;
  const limit = context.policy.max_version_age;
  if (limit === null) return [{ start: 0, end, reason: null }];
  const ranges: SelectedRange[] = [];
  let at = 0;
  for (const span of [...turn.weight_versions].sort((a, b) => a.start - b.start)) {
    const start = Math.max(at, Math.min(span.start, end));
    const stop = Math.min(span.end, end);
    if (start > at) ranges.push({ start: at, end: start, reason: "version_unknown" });
    if (stop <= start) continue;
    // Of a range nobody knows where in the span the weights changed: its oldest counts.
    const version = versionNumbers(span.version)?.oldest ?? null;
    const known = version !== null && context.newestVersion !== null;
    const stale = known && context.newestVersion! - version > limit;
    ranges.push({ start, end: stop, reason: known ? (stale ? "stale_version" : null) : "version_unknown" });
    at = stop;
  }
  if (at < end) ranges.push({ start: at, end, reason: "version_unknown" });
  return ranges;
}

function splitAtGaps(turn: EvidenceTurn, ranges: SelectedRange[]): SelectedRange[] {
  const logprobs = turn.logprobs!;
  const out: SelectedRange[] = [];
  for (const range of ranges) {
    let start = range.start;
    for (let i = range.start; i < range.end; i += 1) {
      if (Number.isFinite(logprobs[i]!)) continue;
      if (i > start) out.push({ ...range, start, end: i });
      out.push({ start: i, end: i + 1, reason: "logprob_missing" });
      start = i + 1;
    }
    if (start < range.end) out.push({ ...range, start });
  }
  return out;
}

/**
 * Turns whose checkpoint is the beginning of a later prompt: the next turn of the segment kept it, or another segment shares it.
 * Length alone decides, because a line keeps or shares a prefix of itself.
 */
function turnsInLaterPrompts(evidence: Pick<TrajectoryEvidence, "segments">): Set<number> {
  const contained = new Set<number>();
  const shared = new Map<number, { tokens: number; by: number }[]>();
  for (const segment of evidence.segments) {
    const first = segment.turns[0];
    if (segment.parent === null || !first) continue;
    const list = shared.get(segment.parent.segment) ?? [];
    list.push({ tokens: Math.min(segment.parent.tokens, first.prompt_keep), by: first.turn });
    shared.set(segment.parent.segment, list);
  }
  for (const segment of evidence.segments) {
    const children = shared.get(segment.segment) ?? [];
    segment.turns.forEach((turn, index) => {
      if (turn.damage !== null) return;
      const end = turn.prompt_keep + turn.prompt_suffix.length + turn.sampled_ids.length;
      const next = segment.turns.slice(index + 1).find((each) => each.damage === null);
      const kept = next !== undefined && next.prompt_keep >= end;
      if (kept || children.some((child) => child.by > turn.turn && child.tokens >= end)) contained.add(turn.turn);
    });
  }
  return contained;
}

/**
 * Turns that the harness asked for again: a later call has the same prompt ids and either carries the evidence of a retry,
 * or the earlier answer is not known to have arrived.
 */
function retriedTurns(evidence: Pick<TrajectoryEvidence, "turns">): Set<number> {
  const earlier = new Map<string, EvidenceTurn[]>();
  const retried = new Set<number>();
  for (const turn of evidence.turns) {
    const key = Buffer.from(turn.prompt_sha256).toString("hex");
    const same = earlier.get(key) ?? [];
    for (const before of same) {
      if (turn.decision.reason === "retry" || before.delivery !== "delivered") retried.add(before.turn);
    }
    earlier.set(key, [...same, turn]);
  }
  return retried;
}
