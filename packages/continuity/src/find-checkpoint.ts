/** Incremental mode at request time: the checkpoint that a request's messages continue. */
import type { Message } from "@tito/format";
import { rulesFor } from "./harness-rules.js";
import { historyMessages } from "./history.js";
import { type FallbackReason, type KeptDifference, matchHistory } from "./match-history.js";
import { containedReplies } from "./relation.js";
import type { EngineState, TurnEntry } from "./state.js";

export interface CheckpointQuery {
  messages: readonly Message[];
  tools_sha256: string;
  renderer_contract: string;
  harness: string | null;
}

export type FoundCheckpoint =
  | {
      kind: "checkpoint";
      /** Pass it to `decide` as `checkpoint` when the turn is committed. */
      call_id: string;
      /** The checkpoint's ids are the first `tokens` of the segment's line: `lineIds(state, found)`. */
      segment: number;
      tokens: number;
      /** `messages.slice(from)` is to be rendered behind the checkpoint. */
      from: number;
      kept: KeptDifference[];
    }
  | { kind: "fallback"; reason: FallbackReason; detail: string };

/** Finds the checkpoint whose history the messages repeat and extend, or says why there is none. Never an error. */
export function findCheckpoint(state: EngineState, query: CheckpointQuery): FoundCheckpoint {
  const candidates = containedReplies(state, query.messages);
  let refused: FoundCheckpoint | null = null;
  for (const turn of candidates) {
    const found = tryTurn(turn, query);
    if (found.kind === "checkpoint") return found;
    refused ??= found;
  }
  return refused ?? { kind: "fallback", reason: "no_checkpoint", detail: "no recorded reply is in the request" };
}

function tryTurn(turn: TurnEntry, query: CheckpointQuery): FoundCheckpoint {
  const refuse = (reason: FallbackReason): FoundCheckpoint => ({
    kind: "fallback",
    reason,
    detail: `call ${turn.call_id}`,
  });
  if (!turn.checkpointable) return refuse("no_checkpoint");
  if (turn.renderer_contract !== query.renderer_contract) return refuse("contract_changed");
  if (turn.tools_sha256 !== query.tools_sha256) return refuse("tools_changed");
  const stored = [...historyMessages(turn.history), turn.reply];
  const match = matchHistory(stored, query.messages, { rules: rulesFor(query.harness) });
  if (match.kind === "fallback") return match;
  const { from, kept } = match;
  return { kind: "checkpoint", call_id: turn.call_id, segment: turn.segment, tokens: turn.end_tokens, from, kept };
}
