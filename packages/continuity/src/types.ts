/** The plain records that go into and come out of the continuity engine. */
import type { DecisionEvidence, DecisionKind, Lane, Message, SharedPrefix } from "@tito/format";

/** A turn as the engine needs it: exact ids, and the messages that explain a drift. Ids are never changed, messages never decide. */
export interface EngineTurn {
  call_id: string;
  prompt_ids: Int32Array;
  sampled_ids: Int32Array;
  /** False for incomplete evidence (missing ids, counts that disagree, aborted) or no sampled id: never extended. */
  checkpointable: boolean;
  lane: Lane;
  /** The request's messages, then the assistant message as returned to the harness. */
  messages: readonly Message[];
  reply: Message;
  tools_sha256: string;
  renderer_contract: string;
  /** Evidence that the harness repeats an earlier call: that call's id, else null. */
  retry_of: string | null;
  /** Harness whose rule data may name volatile text and tool renames; null when unknown. */
  harness: string | null;
}

/** Why a segment was opened. The closed list; docs/continuity.md explains each. */
export type OpeningReason =
  | "first_turn"
  | "new_lineage"
  | "sibling"
  | "retry"
  | "identical_prompt"
  | "parallel_call"
  | "drift"
  | "compaction"
  | "history_truncated"
  | "tools_changed"
  | "contract_changed"
  | "recovered";

/**
 * What to do with a turn.
 * `append`: the prompt starts with the segment's whole line; `branch`: with a checkpoint inside a line; `new_segment`: with no checkpoint.
 * `parent` is where the new segment's line begins (null: a line of its own). `prompt_keep` = ids of the line that the record need not repeat.
 */
export type Decision =
  | { kind: "append"; segment: number; prompt_keep: number; reason: "extends_tip"; evidence: DecisionEvidence }
  | {
      kind: Exclude<DecisionKind, "append">;
      parent: SharedPrefix | null;
      prompt_keep: number;
      reason: OpeningReason;
      evidence: DecisionEvidence;
    };
