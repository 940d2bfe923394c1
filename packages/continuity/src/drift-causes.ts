/** The closed taxonomy of drift: why a request that continues an earlier turn does not start with that turn's ids. */

/** docs/continuity.md gives an example of each; a test keeps the two equal. */
export const DRIFT_CAUSES = {
  tool_arguments_reserialised:
    "tool-call arguments are the same JSON value in another spelling, by the harness or by what printed them",
  tool_call_rewritten: "a tool call came back with another value in its arguments or as another tool",
  tool_call_dropped: "an assistant message came back without tool calls that it had",
  tool_call_id_renamed: "a tool call came back under another id, and the template prints ids",
  tool_renamed: "a tool call came back under another name, otherwise unchanged",
  reasoning_dropped: "the reasoning text was left out",
  reasoning_trimmed: "the reasoning text lost white space at its ends",
  reasoning_changed: "the reasoning text came back as another text",
  content_trimmed: "a text lost white space at its ends",
  content_changed: "a message came back with another text",
  content_reshaped:
    "a text came back as null, as an empty string, as parts, or under another system role, with the same meaning",
  reply_dropped: "the reply was left out of the history",
  system_changed: "a system or developer message differs",
  tools_changed: "the tools list differs",
  contract_changed: "template, tokenizer or engine encode otherwise",
  compaction: "a summary took the place of earlier messages",
  tool_results_pruned: "an old tool result was shortened or replaced by a placeholder",
  history_truncated: "earlier messages were left out, nothing took their place",
  history_edited: "messages were inserted or replaced inside the history",
  volatile_text: "text that the harness changes by itself (billing header, reminder, date) differs",
  ghost_turn: "the history holds an assistant message that was never completed or never sampled in that form",
  merged_turn: "two replies came back as one assistant message",
  template_rewrite: "the messages are equal; the template prints an old one otherwise than before",
  retokenised: "the same text; the sampled ids are not the ones the tokenizer chooses for it",
  unknown: "the messages differ in a way that no other cause names",
} as const;
export type DriftCause = keyof typeof DRIFT_CAUSES;

/** Length limit of `cause_detail`, in characters. */
export const CAUSE_DETAIL_MAX = 200;

export interface Drift {
  cause: DriftCause;
  /** Where, in words; at most {@link CAUSE_DETAIL_MAX} characters. */
  detail: string;
}

export function drift(cause: DriftCause, detail: string): Drift {
  return { cause, detail: detail.length > CAUSE_DETAIL_MAX ? `${detail.slice(0, CAUSE_DETAIL_MAX - 1)}…` : detail };
}

/**
 * Two figures that must never be mixed up.
 * `prompt_differs`: turns whose prompt is not what a canonical replay of the messages would give; information, healthy above 0.
 * `trained_not_sampled`: tokens with a loss mask that no engine sampled; must be 0.
 */
export const METRICS = {
  prompt_differs: "prompt_differs_from_canonical_replay",
  trained_not_sampled: "trained_but_not_sampled",
} as const;
