/** Message matching of incremental mode: where the new messages begin, or why the prompt must be rendered in full. */
import type { Message } from "@tito/format";
import { type BreakingDifference, flatText, type MessageDifference, sameMessage } from "./message.js";
import { type HarnessRules, NO_RULES } from "./rules.js";
import { recognisable, sameIdentity } from "./same-identity.js";

/** Why a checkpoint cannot be kept. docs/continuity.md explains each. */
export const FALLBACK_REASONS = {
  no_checkpoint: "the request contains no reply that was recorded whole",
  tools_changed: "the tools list is another one",
  contract_changed: "the renderer contract is another one",
  message_missing: "a message of the history was left out, replaced or moved",
  nothing_new: "the request adds no message to the history",
  role_changed: "a message came back under another role",
  tool_calls_changed: "an assistant message came back with other tool-call ids",
  name_changed: "a tool call came back under a name that the harness's rules do not list",
  arguments_changed: "a tool call came back with another value in its arguments",
  content_changed: "a message came back with another text",
  reasoning_changed: "the reasoning came back as another text",
} as const;
export type FallbackReason = keyof typeof FALLBACK_REASONS;

/** A difference that the checkpoint survives. */
export interface KeptDifference {
  message: number;
  difference: MessageDifference;
}

export type HistoryMatch =
  | { kind: "suffix"; from: number; kept: KeptDifference[] }
  | { kind: "fallback"; reason: FallbackReason; detail: string };

/**
 * Compares the history of a checkpoint (request messages, then the reply) with a new request's messages.
 * `suffix`: the history is there, `next.slice(from)` is new. Equal tool-call ids make it the same message; what may differ is JSON formatting,
 * equal-valued numbers, the shape of text, trimmed, renamed or absent reasoning, and a rename that the rules list. Anything else falls back.
 */
export function matchHistory(
  stored: readonly Message[],
  next: readonly Message[],
  options: { rules?: HarnessRules } = {},
): HistoryMatch {
  const rules = options.rules ?? NO_RULES;
  const kept: KeptDifference[] = [];
  for (let i = 0; i < stored.length; i++) {
    const returned = next[i];
    if (returned === undefined) return fallback("message_missing", `the request ends before message ${i}`);
    const verdict = sameMessage(stored[i]!, returned, { rules });
    if (!verdict.same) return broken(stored, next, i, verdict.differs!);
    kept.push(...verdict.kept.map((difference) => ({ message: i, difference })));
  }
  if (next.length === stored.length) return fallback("nothing_new", "the request ends with the recorded reply");
  return { kind: "suffix", from: stored.length, kept };
}

function fallback(reason: FallbackReason, detail: string): HistoryMatch {
  return { kind: "fallback", reason, detail };
}

function broken(
  stored: readonly Message[],
  next: readonly Message[],
  index: number,
  difference: BreakingDifference,
): HistoryMatch {
  const message = stored[index]!;
  const where = `message ${index} (${message.role}): ${difference}`;
  const returned = next[index]!;
  const moved = next.some((other, i) => i !== index && recognisable(message, other));
  const sameText = flatText(message.content) === flatText(returned.content);
  if (difference === "role") return fallback(sameText && !moved ? "role_changed" : "message_missing", where);
  if (moved || (!difference.startsWith("tool_call_ids") && !sameIdentity(message, returned)))
    return fallback("message_missing", where);
  return fallback(reasonOf(difference), where);
}

function reasonOf(difference: BreakingDifference): FallbackReason {
  switch (difference) {
    case "role":
      return "role_changed";
    case "tool_call_ids":
    case "tool_call_ids_renamed":
      return "tool_calls_changed";
    case "tool_call_id":
      return "message_missing";
    case "name":
      return "name_changed";
    case "arguments":
      return "arguments_changed";
    case "content":
    case "content_trimmed":
      return "content_changed";
    case "reasoning":
      return "reasoning_changed";
  }
}
