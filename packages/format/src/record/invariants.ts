/**
 * What must hold between the fields of a turn, checked before it is written and after it is read. docs/format.md#turn-invariants lists the same.
 * None of these says that a turn is good: a turn with defects is recorded too. They say that the record means what it says.
 */
import type { TurnRecord, VersionSpan } from "./records.js";

/** The first invariant that does not hold, in words; null when all do. */
export function findTurnProblem(turn: TurnRecord): string | null {
  if (turn.sampled_ids.length === 0 && turn.usage.completion_tokens !== 0 && turn.usage.completion_tokens !== null)
    return `a turn without a sampled id counts ${turn.usage.completion_tokens} of them`;
  if (turn.prompt_keep + turn.prompt_suffix.length === 0) return "a turn has at least one prompt id";
  return findLogprobProblem(turn) ?? findSpanProblem(turn.weight_versions, turn.sampled_ids.length);
}

/** Lengths agree; float32 only where the writer chose it; NaN exactly where a gap says why; no infinity. */
function findLogprobProblem(turn: TurnRecord): string | null {
  const { logprobs, logprob_gaps: gaps, sampled_ids: sampled } = turn;
  if (logprobs === null) return gaps.length === 0 ? null : "gaps in log probabilities that are not there";
  if (logprobs.length !== sampled.length) {
    return `${logprobs.length} log probabilities for ${sampled.length} sampled ids`;
  }
  let previous = -1;
  for (const gap of gaps) {
    if (gap.index <= previous || gap.index >= logprobs.length)
      return `log probability gap at ${gap.index} is out of order or range`;
    if (!Number.isNaN(logprobs[gap.index]!)) return `log probability ${gap.index} is marked missing but has a value`;
    previous = gap.index;
  }
  let missing = 0;
  for (let i = 0; i < logprobs.length; i++) {
    const value = logprobs[i]!;
    if (Number.isNaN(value)) missing++;
    else if (!Number.isFinite(value))
      return `log probability ${i} is ${value}: not finite values are stored as NaN with a gap`;
  }
  if (missing !== gaps.length) return `${missing} log probabilities are NaN but ${gaps.length} gaps are recorded`;
  return logprobs instanceof Float64Array && sampled.length > 0 && fitsFloat32(logprobs)
    ? "log probabilities that all fit float32 are stored as float64"
    : null;
}

function fitsFloat32(values: Float64Array): boolean {
  return values.every((value) => Number.isNaN(value) || Object.is(Math.fround(value), value));
}

/** Spans cover [0, sampled) in order, without overlap or hole. */
function findSpanProblem(spans: readonly VersionSpan[], sampled: number): string | null {
  let at = 0;
  for (const span of spans) {
    if (span.start !== at || span.end <= span.start)
      return `weight version span [${span.start}, ${span.end}) does not follow ${at}`;
    at = span.end;
  }
  return at === sampled ? null : `weight version spans cover ${at} of ${sampled} sampled ids`;
}
