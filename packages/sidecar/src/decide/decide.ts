/** Stop 5: which segment this turn extends, or why a new one opens. The continuity engine decides; here its input is put together. */
import {
  classifyLane,
  type Decision,
  type DifferenceTexts,
  decide,
  detectHarness,
  type EngineTurn,
  isCheckpointable,
  type LaneVerdict,
  laneFacts,
} from "@tito/continuity";
import type { ToolDefinition, TurnRecord } from "@tito/format";
import type { NeutralRequest } from "../dialect/neutral.js";
import type { IncomingCall } from "../gate/incoming-call.js";
import type { PromptEvidence } from "../sample/prompt-plan.js";
import type { Conversation } from "../trajectory/conversation.js";
import type { TurnLog } from "../trajectory/turn-log.js";

/** The lane of a request, by its harness's rules and by what earlier turns tell. */
export function laneOf(
  incoming: Pick<IncomingCall, "headers" | "path">,
  request: Pick<NeutralRequest, "messages" | "tools" | "maxOutputTokens">,
  log: Pick<TurnLog, "harness" | "continuity">,
): { verdict: LaneVerdict; harness: string | null } {
  const header = (name: string): string | undefined => incoming.headers.get(name)?.[0];
  const rules = detectHarness(log.harness, header);
  const input = {
    header,
    path: incoming.path,
    messages: request.messages,
    tools: request.tools.length,
    max_tokens: request.maxOutputTokens,
    ...laneFacts(log.continuity),
  };
  return { verdict: classifyLane(input, rules), harness: rules?.harness ?? null };
}

/** What incremental mode may build on, as it is when a request arrives. */
export function conversationOf(
  log: Pick<TurnLog, "harness" | "continuity" | "endings">,
  headers: IncomingCall["headers"],
): Conversation {
  const rules = detectHarness(log.harness, (name) => headers.get(name)?.[0]);
  return { state: log.continuity, harness: rules?.harness ?? null, endings: log.endings };
}

/** What of a turn is known before its place is. */
export type UnplacedTurn = Omit<
  TurnRecord,
  "messages_keep" | "messages_new" | "tools" | "prompt_keep" | "prompt_suffix" | "decision"
>;

/** What the continuity engine takes besides the record itself. */
export interface TurnContext {
  promptIds: Int32Array;
  request: Pick<NeutralRequest, "messages">;
  retryOf: string | null;
  harness: string | null;
  arrivedAfter: number | null;
}

export function engineTurn(unplaced: UnplacedTurn, context: TurnContext): EngineTurn {
  return {
    call_id: unplaced.call_id,
    prompt_ids: context.promptIds,
    sampled_ids: unplaced.sampled_ids,
    checkpointable: isCheckpointable(unplaced),
    lane: unplaced.lane,
    messages: context.request.messages,
    reply: unplaced.message,
    tools_sha256: Buffer.from(unplaced.tools_sha256).toString("hex"),
    renderer_contract: unplaced.renderer_contract,
    retry_of: context.retryOf,
    harness: context.harness,
    arrived_after: context.arrivedAfter,
  };
}

const FULL_HISTORY: PromptEvidence = { checkpoint: null, evidence: {} };

/**
 * Decides and completes the record. Called in commit order, inside the trajectory's critical section; the state is not changed yet.
 * The record repeats nothing that its segment's line, or the history it is told against, already holds.
 */
export function place(
  log: Pick<TurnLog, "continuity" | "toolsOfSegment">,
  turn: EngineTurn,
  unplaced: UnplacedTurn,
  tools: ToolDefinition[],
  prompt: PromptEvidence = FULL_HISTORY,
  texts: DifferenceTexts | null = null,
): { decision: Decision; record: TurnRecord } {
  const decision = decide(log.continuity, turn, {
    ...(prompt.checkpoint === null ? {} : { checkpoint: prompt.checkpoint }),
    ...(texts === null ? {} : { texts }),
  });
  const sameTools = decision.kind === "append" && log.toolsOfSegment.get(decision.segment) === turn.tools_sha256;
  const record: TurnRecord = {
    ...unplaced,
    messages_keep: decision.messages_keep,
    messages_new: turn.messages.slice(decision.messages_keep),
    tools: sameTools ? null : tools,
    prompt_keep: decision.prompt_keep,
    prompt_suffix: turn.prompt_ids.slice(decision.prompt_keep),
    decision: {
      kind: decision.kind,
      reason: decision.reason,
      evidence: { ...decision.evidence, ...prompt.evidence },
    },
  };
  return { decision, record };
}
