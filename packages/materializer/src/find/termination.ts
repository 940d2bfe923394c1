/** How a rollout ended, from the trial's exception, the capture's gaps and the last call. Pure. */
import type { TrajectoryEvidence } from "../read/evidence.js";
import type { Termination } from "../recipe/reasons.js";

/** What a trial runner says about a failure. `verifying`: the verifier had begun and gave no reward. */
export interface TrialFailure {
  type: string;
  message: string;
  agent_started: boolean;
  verifying: boolean;
}

/** Exception names of Harbor and of common runners. Anything else is judged by the phase that it happened in. */
const BY_NAME: readonly (readonly [RegExp, Termination])[] = [
  [/^(AgentTimeoutError|AgentRunTimeoutError|TrialTimeoutError)$/, "timeout"],
  [/^Verifier|^RewardFile|^AddTestsDir|^DownloadVerifierDir|^Grader/, "verifier_error"],
  [/^(AgentSetup|Environment|Sandbox|Docker|Compose|Container|Image|CancelledError$|Healthcheck)/, "env_error"],
  [/^(ContextLengthExceeded|ContextOverflow|ContextWindowExceeded)/, "context_overflow"],
  [/^OutputLengthExceeded/, "length"],
  [/^(NonZeroAgentExitCode|Agent)/, "agent_error"],
];

export interface Ending {
  termination: Termination;
  detail: string | null;
}

/**
 * First match decides: capture_incomplete, what the runner reported, context_overflow, length, completed.
 * A trial without any trajectory and without a failure is capture_incomplete: something ran and nothing was recorded.
 */
export function endingOf(trajectories: readonly TrajectoryEvidence[], failure: TrialFailure | null): Ending {
  const gaps = trajectories.flatMap((each) => each.incomplete);
  if (gaps.length > 0) return { termination: "capture_incomplete", detail: summary(gaps) };
  if (failure !== null)
    return { termination: terminationOf(failure), detail: bounded(`${failure.type}: ${failure.message}`) };
  if (trajectories.every((each) => each.turns.length === 0)) {
    return { termination: "capture_incomplete", detail: "no call was captured" };
  }
  const newest = lastTrajectory(trajectories);
  if (newest.last_uncaptured !== null && /context.?(overflow|length|window)/i.test(newest.last_uncaptured)) {
    return { termination: "context_overflow", detail: newest.last_uncaptured };
  }
  const last = newest.turns.filter((turn) => !turn.lane.startsWith("aux:")).at(-1);
  if (last?.finish_reason === "length")
    return { termination: "length", detail: `turn ${last.turn} ended at its token limit` };
  return { termination: "completed", detail: null };
}

function terminationOf(failure: TrialFailure): Termination {
  for (const [pattern, termination] of BY_NAME) if (pattern.test(failure.type)) return termination;
  if (!failure.agent_started) return "env_error";
  return failure.verifying ? "verifier_error" : "agent_error";
}

/** The trajectory whose last turn finished last. */
function lastTrajectory(trajectories: readonly TrajectoryEvidence[]): TrajectoryEvidence {
  const finished = (each: TrajectoryEvidence) => each.turns.at(-1)?.finished_ms ?? -1;
  return trajectories.reduce((best, each) => (finished(each) > finished(best) ? each : best));
}

function summary(gaps: readonly string[]): string {
  return bounded(gaps.length > 3 ? `${gaps.slice(0, 3).join("; ")}; and ${gaps.length - 3} more` : gaps.join("; "));
}

function bounded(text: string): string {
  return text.length > 500 ? `${text.slice(0, 497)}...` : text;
}
