/** The closed lists of words that samples use. `docs/samples.md` explains each; a test keeps the two equal. */

/** What a span of a sample is: the first prompt, later context, sampled ids, or ids of a certified junction. */
export const SPAN_KINDS = ["prompt", "context", "action", "seam"] as const;
export type SpanKind = (typeof SPAN_KINDS)[number];

/**
 * Why a sampled token does not train. Every sampled token of a run is trained once or counted under exactly one of these.
 * The first block is decided a turn at a time, in this order; the second when samples are cut.
 */
export const MASK_REASONS = [
  "capture_damage",
  "logprob_missing",
  "logprob_not_behaviour",
  "aborted",
  "client_gone",
  "retry_orphan",
  "undelivered",
  "delivery_unknown",
  "auxiliary",
  "sub_agent",
  "compaction",
  "main_lane",
  "length",
  "malformed",
  "stale_version",
  "version_unknown",
  "realign_overwritten",
  "max_seq_len",
  "off_line",
] as const;
export type MaskReason = (typeof MASK_REASONS)[number];

/**
 * `reason` of a span. `trained`: loss mask 1. `shared_prefix`: sampled, and owned by an earlier sample.
 * `prompt`, `context` and `seam` stand where nothing was sampled.
 */
export const SPAN_REASONS = ["trained", "shared_prefix", "prompt", "context", "seam", ...MASK_REASONS] as const;
export type SpanReason = (typeof SPAN_REASONS)[number];

/** How a rollout ended. See docs/samples.md for the order in which they are tried. */
export const TERMINATIONS = [
  "completed",
  "length",
  "context_overflow",
  "timeout",
  "agent_error",
  "env_error",
  "verifier_error",
  "capture_incomplete",
] as const;
export type Termination = (typeof TERMINATIONS)[number];

/** Reasons that are left out of `eligible_tokens`: tokens that no policy would train. */
export const INELIGIBLE_REASONS: ReadonlySet<MaskReason> = new Set<MaskReason>([
  "auxiliary",
  "retry_orphan",
  "client_gone",
  "aborted",
]);
