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
  "finish_unknown",
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
  "interrupted",
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

/** One sentence for each reason; `tito explain` prints it. */
export const REASON_TEXTS: Readonly<Record<SpanReason, string>> = {
  trained: "the policy sampled it here, behind exactly these tokens, and the harness got it",
  shared_prefix: "sampled here, and an earlier sample shows and owns it",
  prompt: "part of the first prompt; nothing was sampled here",
  context: "tool results, user messages or template text after the first answer; nothing was sampled here",
  seam: "ids of the template's own that a certified junction put between two turns; nothing was sampled here",
  capture_damage: "its record, or the prompt it needs, is damaged or disagrees with itself",
  logprob_missing: "the engine gave no finite log probability for it",
  logprob_not_behaviour: "its log probability is not that of the distribution it was sampled from",
  aborted: "the call was cut short before the policy ended it",
  client_gone: "the harness hung up during the answer",
  finish_unknown: "the engine gave no finish reason that is known: whether the policy ended this answer cannot be told",
  retry_orphan: "the harness asked again and went on with the other answer",
  undelivered: "the answer did not reach the harness, and no later prompt contains it",
  delivery_unknown: "nothing says that the answer reached the harness, and no later prompt contains it",
  auxiliary: "an auxiliary call (title, summary line, probe); the policy masks these",
  sub_agent: "a sub-agent's call; the policy masks these",
  compaction: "a compaction call; the policy masks these",
  main_lane: "a call of the main agent; the policy masks these",
  length: "the call ended at its token limit; the policy masks these",
  malformed: "the output did not parse; the policy masks these",
  stale_version: "sampled by weights older than max_version_age allows",
  version_unknown: "the weight version is not known, and max_version_age is set",
  realign_overwritten: "given up so that two segments could be one sample",
  max_seq_len: "its turn ends behind max_seq_len",
  off_line: "later turns of its segment do not build on it",
};
