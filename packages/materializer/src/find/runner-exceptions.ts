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
  [/^(AgentTimeout(Error)?|AgentRunTimeout(Error)?|TrialTimeout(Error)?)$/, "timeout", true],
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
  [
    /rate_?limit|too_?many_?requests|throttl|overload|unavailable|internal_?server|gateway|quota|credential/i,
    "env_error",
    false,
  ],
  [
    /network|connect(ion|or|error|timeout|_error|_timeout)|disconnect|broken_?pipe|remote_?protocol|stalled|dns|gaierror|^(E?CONN(RESET|REFUSED|ABORTED)|E?TIMEDOUT|EPIPE)$/i,
    "env_error",
    false,
  ],
  [
    /^(HTTP|Http|Read|Write|Proxy|SSL|TLS|Retry|Payload|ClientPayload|ClientOS|Response)(Status)?Error$/,
    "env_error",
    false,
  ],
  [/IncompleteRead|ClientError$|^ServerError$|^HTTPException$/, "env_error", false],
  [
    /health_?check|(engine|worker|node|pod|actor|server)_?(core_?)?(dead|died|lost|crashed|evicted|unreachable)/i,
    "env_error",
    false,
  ],
  [
    /^(Engine|Inference|Vllm|VLLM|Sglang|SGLang|Llama|Ray|Node|Pod|Kubernetes|Modal|Daytona|E2B|Runloop)[A-Z]/,
    "env_error",
    false,
  ],
  [
    /out_?of_?memory|oom_?killed|^MemoryError$|preempt|evicted|spot_?interrupt|^KeyboardInterrupt$|^SystemExit$/i,
    "env_error",
    false,
  ],
  [/time_?out(_?(error|exception))?$|timed_?out/i, "env_error", false],
  [/^Agent/, "agent_error", true],
];

/** The meaning of an exception by its name (with or without its module: `litellm.exceptions.RateLimitError`), else by the phase that it happened in. */
export function meaningOf(type: string, phase: ExceptionPhase): ExceptionMeaning {
  const name = type.slice(Math.max(type.lastIndexOf("."), type.lastIndexOf(":"), type.lastIndexOf("/")) + 1).trim();
  for (const [pattern, termination, counts] of TABLE) if (pattern.test(name)) return { termination, counts };
  if (!phase.agent_started) return { termination: "env_error", counts: false };
  return phase.verifying
    ? { termination: "verifier_error", counts: false }
    : { termination: "agent_error", counts: true };
}
