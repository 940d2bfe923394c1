/** The shapes of a continuation: what the harness appended to the sampled turn, and how that turn ended. A certificate speaks about shapes. */
import type { Message } from "@tito/format";

/** How sampling stopped. */
export type TurnEnd = "stop" | "length" | "stop_string";

export const SHAPES = [
  "tool_result",
  "parallel_results",
  "results_then_user",
  "user_turn",
  "user_turn_after_reasoning",
  "user_turns",
  "user_turn_after_length",
  "user_turn_after_stop_string",
] as const;
export type Shape = (typeof SHAPES)[number];

/** Why a continuation has no shape: then it falls back to full history. */
export type ShapelessReason = "suffix_empty" | "suffix_role" | "results_do_not_answer" | "turn_cut_inside_block";

/**
 * The shape of `reply` followed by `suffix`. `history` are the messages before the reply: a new user turn after reasoning is a shape of its own,
 * because many templates then rewrite history.
 */
export function shapeOf(
  history: readonly Message[],
  reply: Message,
  end: TurnEnd,
  suffix: readonly Message[],
): Shape | ShapelessReason {
  const calls = reply.tool_calls ?? [];
  const results = suffix.findIndex((message) => message.role !== "tool");
  const resultCount = results < 0 ? suffix.length : results;
  const users = suffix.slice(resultCount);
  if (suffix.length === 0) return "suffix_empty";
  if (users.some((message) => message.role !== "user")) return "suffix_role";
  const answered = suffix.slice(0, resultCount).map((message) => message.tool_call_id);
  const wanted = calls.map((call) => call.id);
  if (answered.length !== wanted.length || wanted.some((id) => !answered.includes(id))) return "results_do_not_answer";
  if (end !== "stop") {
    if (calls.length > 0 || (reply.content ?? "") === "" || users.length !== 1) return "turn_cut_inside_block";
    return end === "length" ? "user_turn_after_length" : "user_turn_after_stop_string";
  }
  if (resultCount > 0)
    return users.length > 0 ? "results_then_user" : resultCount === 1 ? "tool_result" : "parallel_results";
  if (users.length > 1) return "user_turns";
  return hasReasoning(history, reply) ? "user_turn_after_reasoning" : "user_turn";
}

/** True when an assistant message up to the reply holds a reasoning block, be it empty. */
export function hasReasoning(history: readonly Message[], reply: Message): boolean {
  return [...history, reply].some((message) => message.role === "assistant" && message.reasoning !== undefined);
}

export const isShape = (value: Shape | ShapelessReason): value is Shape =>
  (SHAPES as readonly string[]).includes(value);
