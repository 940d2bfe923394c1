/** How a rollout ended, from the trial's exception, the capture's gaps and the last call. Pure. */
import { CUT_SHORT, type EvidenceTurn, type TrajectoryEvidence } from "../read/evidence.js";
import type { Termination } from "../recipe/reasons.js";
import { meaningOf } from "./runner-exceptions.js";

/** What a trial runner says about a failure. `verifying`: the verifier had begun and gave no reward. */
export interface TrialFailure {
  type: string;
  message: string;
  agent_started: boolean;
  verifying: boolean;
  /** The runner gave a reward and says that it counts beside this failure: then the failure is the agent's, not the machinery's. */
  reward_counts: boolean;
}

export interface Ending {
  termination: Termination;
  detail: string | null;
}

/** What the trial's runner says of its end: a failure, that there was none, or nothing at all. */
export interface RunnerWord {
  failure: TrialFailure | null;
  /** The runner's result is there: without a failure in it the trial ran to its end. */
  finished: boolean;
}

/**
 * First match decides: capture_incomplete, what the runner reported, context_overflow, length, interrupted, completed.
 * A trial without any trajectory and without a failure is capture_incomplete: something ran and nothing was recorded.
 */
export function endingOf(trajectories: readonly TrajectoryEvidence[], runner: RunnerWord): Ending {
  const gaps = trajectories.flatMap((each) => each.incomplete);
  if (gaps.length > 0) return { termination: "capture_incomplete", detail: summary(gaps) };
  const { failure } = runner;
  if (failure !== null) {
    const { termination, counts } = meaningOf(failure.type, failure);
    const detail = bounded(`${failure.type}: ${failure.message}`);
    return { termination: failure.reward_counts && !counts ? "agent_error" : termination, detail };
  }
  const newest = lastTrajectory(trajectories);
  const refused = newest?.last_uncaptured ?? null;
  if (refused !== null && OVERFLOW.test(refused)) return { termination: "context_overflow", detail: bounded(refused) };
  if (newest === null || trajectories.every((each) => each.turns.length === 0))
    return { termination: "capture_incomplete", detail: "no call was captured" };
  const last = newest.turns.filter((turn) => !turn.lane.startsWith("aux:")).at(-1);
  if (last?.finish_reason === "length")
    return { termination: "length", detail: `turn ${last.turn} ended at its token limit` };
  const cut = cutShort(newest, last, runner);
  return cut === null
    ? { termination: "completed", detail: null }
    : { termination: "interrupted", detail: bounded(cut) };
}

/** Reason of a refusal for its length, ours or the engine's, or an engine's words in records of earlier versions. */
const OVERFLOW = /context.?(overflow|length|window)|(input|prompt) .*(exceeds|longer than) the (maximum|model)/i;

/** Why nothing shows that the rollout came to its own end, in words; null when something does. */
function cutShort(newest: TrajectoryEvidence, last: EvidenceTurn | undefined, runner: RunnerWord): string | null {
  const defect = last?.defects.find((each) => CUT_SHORT.has(each) || each === "client_gone");
  if (last !== undefined && (defect !== undefined || last.finish_reason === "abort" || last.finish_reason === "error"))
    return `turn ${last.turn} was cut short (${defect ?? last.finish_reason})`;
  if (last?.finish_reason === "tool_calls" && newest.last_uncaptured !== null)
    return `the call after turn ${last.turn} got no answer (${newest.last_uncaptured})`;
  if (runner.finished) return null;
  if (!newest.sealed) return "the trajectory was never sealed, and no runner says how the trial ended";
  if (last?.finish_reason === "unknown") return `turn ${last.turn} ended for a reason that is not known`;
  return null;
}

/** The trajectory whose last call ended last. */
function lastTrajectory(trajectories: readonly TrajectoryEvidence[]): TrajectoryEvidence | null {
  return trajectories.reduce<TrajectoryEvidence | null>(
    (best, each) => (best === null || each.ended_ms > best.ended_ms ? each : best),
    null,
  );
}

function summary(gaps: readonly string[]): string {
  return bounded(gaps.length > 3 ? `${gaps.slice(0, 3).join("; ")}; and ${gaps.length - 3} more` : gaps.join("; "));
}

function bounded(text: string): string {
  return text.length > 500 ? `${text.slice(0, 497)}...` : text;
}
