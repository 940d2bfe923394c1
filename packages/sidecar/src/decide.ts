/** Stop 5: which segment this turn extends, or why a new one opens. The continuity engine decides; here its input is put together. */
import { createHash } from "node:crypto";
import {
  classifyLane,
  type Decision,
  decide,
  detectHarness,
  type EngineTurn,
  type LaneVerdict,
  laneFacts,
} from "@tito/continuity";
import type { ToolDefinition, TurnRecord } from "@tito/format";
import type { CallContext } from "./call.js";
import type { Trajectory } from "./trajectory.js";

/** The lane of a request, by its harness's rules and by what earlier turns tell. */
export function laneOf(context: CallContext): { verdict: LaneVerdict; harness: string | null } {
  const { incoming, request, trajectory } = context;
  const header = (name: string): string | undefined => incoming.headers.get(name)?.[0];
  const rules = detectHarness(trajectory.harness, header);
  const input = {
    header,
    path: incoming.path,
    messages: request.messages,
    tools: request.tools.length,
    max_tokens: request.maxOutputTokens,
    ...laneFacts(trajectory.continuity),
  };
  return { verdict: classifyLane(input, rules), harness: rules?.harness ?? null };
}

/** What of a turn is known before its place is. */
export type UnplacedTurn = Omit<
  TurnRecord,
  "messages_keep" | "messages_new" | "tools" | "prompt_keep" | "prompt_suffix" | "decision"
>;

/**
 * Decides and completes the record. Called in commit order, inside the trajectory's critical section; the state is not changed yet.
 * The record repeats nothing that its segment's line, or the history it is told against, already holds.
 */
export function place(
  trajectory: Trajectory,
  turn: EngineTurn,
  unplaced: UnplacedTurn,
  tools: ToolDefinition[],
): { decision: Decision; record: TurnRecord } {
  const decision = decide(trajectory.continuity, turn);
  const sameTools = decision.kind === "append" && trajectory.toolsOfSegment.get(decision.segment) === turn.tools_sha256;
  const record: TurnRecord = {
    ...unplaced,
    messages_keep: decision.messages_keep,
    messages_new: turn.messages.slice(decision.messages_keep),
    tools: sameTools ? null : tools,
    prompt_keep: decision.prompt_keep,
    prompt_suffix: turn.prompt_ids.slice(decision.prompt_keep),
    decision: { kind: decision.kind, reason: decision.reason, evidence: decision.evidence },
  };
  return { decision, record };
}

/** SHA-256 over the tools list, spelled as the harness spelled it. */
export function toolsDigest(tools: readonly ToolDefinition[]): Buffer {
  const list = tools.map((tool) => [tool.name, tool.description ?? null, tool.parameters ?? null]);
  return createHash("sha256").update(JSON.stringify(list)).digest();
}
