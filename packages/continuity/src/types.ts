/** The plain records that go into and come out of the continuity engine. */
import type { DecisionEvidence, DecisionKind, Lane, Message, SharedPrefix } from "@tito/format";
import type { OpeningReason } from "./reasons.js";

/** A turn as the engine needs it: exact ids, and the messages that explain a drift. Ids are never changed, messages never decide. */
export interface EngineTurn {
  call_id: string;
  prompt_ids: Int32Array;
  sampled_ids: Int32Array;
  /** False for incomplete evidence (missing ids, counts that disagree, aborted) or no sampled id: never extended. */
  checkpointable: boolean;
  lane: Lane;
  /** The request's messages, without the reply. */
  messages: readonly Message[];
  /** The assistant message as returned to the harness. */
  reply: Message;
  /** Hex digest of the tools list. */
  tools_sha256: string;
  renderer_contract: string;
  /** Evidence that the harness repeats an earlier call: that call's id, else null. */
  retry_of: string | null;
  /** Harness whose rule data may name volatile text and tool renames; null when unknown. */
  harness: string | null;
  /** The last commit number at the time the request arrived; null when unknown. Turns committed after it were in flight beside this one. */
  arrived_after: number | null;
}

/** Did the harness get the answer? `unknown` until something is recorded; a tie is won by `delivered`. */
export type DeliveryState = "delivered" | "failed" | "unknown";

/** Why an opened segment is only a new file of an earlier one: both are one segment to the materializer. */
export type Continuation = { segment: number; why: "parked" | "recovered" };

/**
 * What to do with a turn.
 * `append`: the prompt starts with the segment's whole line; `branch`: with a checkpoint inside a line; `new_segment`: with no checkpoint.
 * `segment` is where the turn goes (for an opening: the number that the new segment gets). `parent` is where a new segment's line begins
 * (null: a line of its own). `prompt_keep` = ids of the line that the record need not repeat. `messages_keep` = leading messages that equal,
 * to the letter, the history of turn `evidence.against_call_id` (its request's messages, then its reply), so that the record need not repeat them.
 */
export type Decision =
  | {
      kind: "append";
      segment: number;
      prompt_keep: number;
      messages_keep: number;
      reason: "extends_tip";
      evidence: DecisionEvidence;
    }
  | {
      kind: Exclude<DecisionKind, "append">;
      segment: number;
      parent: SharedPrefix | null;
      continues: Continuation | null;
      prompt_keep: number;
      messages_keep: number;
      reason: OpeningReason;
      evidence: DecisionEvidence;
    };
