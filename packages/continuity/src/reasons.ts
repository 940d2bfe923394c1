/** The closed list of reasons that a decision can carry. docs/continuity.md gives an example of each; a test keeps the two equal. */

/** Why a segment was opened. */
export const OPENING_REASONS = {
  first_turn: "nothing was recorded before in this trajectory",
  new_lineage: "the request continues nothing that was recorded: a sub-agent, a title call, a fresh conversation",
  recovered: "the prompt extends a tip that an earlier process recorded; the new file continues that segment",
  parked: "the prompt extends the tip of a segment whose idle file was closed; the new file continues that segment",
  retry: "the harness repeats an earlier call, with evidence; a sibling of that call",
  identical_prompt: "the prompt ids equal those of an earlier turn, without evidence of a retry",
  parallel_call: "another call from the same checkpoint was in flight at the same time",
  after_incomplete: "the turn behind the checkpoint was aborted or incomplete, and such a turn is never extended",
  sibling: "the prompt goes another way than the turn that already follows the checkpoint",
  drift: "the request contains an earlier reply, but not with the ids that were sampled or in another context",
  compaction: "the harness replaced its history by a summary",
  history_truncated: "the harness left out messages of its history",
  tools_changed: "the tools list is another one than in the turn that this one continues",
  contract_changed: "template, tokenizer or engine encode otherwise than in the turn that this one continues",
} as const;
export type OpeningReason = keyof typeof OPENING_REASONS;

/** Why a turn was appended. */
export const APPEND_REASONS = {
  extends_tip: "the prompt starts with all ids of the segment's line",
} as const;
export type AppendReason = keyof typeof APPEND_REASONS;
