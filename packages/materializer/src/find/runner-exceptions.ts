/**
 * What a trial runner's exception means: how the rollout ended, and whether a reward that stands beside it counts where the runner does not
 * say so itself. docs/samples.md#rewards-that-count is this table in words. Pure.
 */
import type { Termination } from "../recipe/reasons.js";

/** `counts`: the policy, not the machinery, made the trial end, so that the verifier's reward is about the policy. */
export interface ExceptionMeaning {
  termination: Termination;
  counts: boolean;
}

/** Where in the trial an exception happened. `verifying`: the verifier had begun and gave no reward. */
export interface ExceptionPhase {
  agent_started: boolean;
  verifying: boolean;
}

type Row = readonly [pattern: RegExp, termination: Termination, counts: boolean];

/**
 * First match decides. The names are those of Harbor 0.26.0's own table and of the clients that its agents use; Harbor's answer to whether a
 * reward is valid is ours too. Later rows are families of names, so that other runners and versions are covered.
 */
const TABLE: readonly Row[] = [
  [/^(AgentTimeoutError|AgentRunTimeoutError|TrialTimeoutError)$/, "timeout", true],
  [/^(ContextLengthExceeded|ContextOverflow|ContextWindowExceeded)/, "context_overflow", true],
  [/^(OutputLengthExceeded|OutputTokenExceeded)/, "length", true],
  [/^(NonZeroAgentExitCode|AgentSafetyRefusal|ContentPolicyViolation)/, "agent_error", true],
  [/^(Verifier|RewardFile|AddTestsDir|DownloadVerifierDir|Grader|Regrade)/, "verifier_error", false],
  [
    /^(AgentSetup|AgentAuthentication|Environment|Sandbox|Docker|Compose|Container|Image|Healthcheck)/,
    "env_error",
    false,
  ],
  [
    /^(CancelledError$|MemoryLimitExceeded|SSHAccess|GKE|RuntimeRequest|ServiceOperationsUnsupported)/,
    "env_error",
    false,
  ],
  [/^(VercelScope|DspyImport|MissingExtra|Infrastructure)/, "env_error", false],
  [
    /^(Api|API|UnknownApi|ModelNotFound|UnsupportedModelParameters|UnsupportedParams|BudgetExceeded)/,
    "env_error",
    false,
  ],
  [/^(BadRequest|UnprocessableEntity|Authentication|PermissionDenied|NotFound)Error$/, "env_error", false],
  [/RateLimit|Throttl|Overloaded|Unavailable|InternalServer|Gateway|Quota|Credential/, "env_error", false],
  [/Network|Connection|Connect(Error|Timeout)|Disconnect|BrokenPipe|RemoteProtocol|Stalled/, "env_error", false],
  [/Timeout(Error|Exception)?$|TimedOut/, "env_error", false],
  [/^Agent/, "agent_error", true],
];

/** The meaning of an exception by its name, else by the phase that it happened in. */
export function meaningOf(type: string, phase: ExceptionPhase): ExceptionMeaning {
  for (const [pattern, termination, counts] of TABLE) if (pattern.test(type)) return { termination, counts };
  if (!phase.agent_started) return { termination: "env_error", counts: false };
  return phase.verifying
    ? { termination: "verifier_error", counts: false }
    : { termination: "agent_error", counts: true };
}
