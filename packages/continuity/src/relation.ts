/** Finds the earlier turn that a request continues, by what the request itself shows. */
import type { Message } from "@tito/format";
import { historyMessages } from "./history.js";
import { canonicalMessage, flatText } from "./message.js";
import { replyKeys } from "./reply-keys.js";
import { equalButForIds, recognisable } from "./same-identity.js";
import type { EngineState, TurnEntry } from "./state.js";

/** Replies with the same text (“ok”) that are tried. */
const CANDIDATES_MAX = 8;

/** The latest earlier reply that the messages contain: by tool-call id, else by text. Several with that key: the one at the same place, else the last. */
export function containedReply(state: EngineState, messages: readonly Message[]): TurnEntry | null {
  for (let i = messages.length - 1; i >= 0; i--) {
    const message = messages[i]!;
    for (const key of replyKeys(message)) {
      const found = state.replies.get(key);
      if (found === undefined) continue;
      return found.findLast((turn) => turn.history.length === i) ?? found[found.length - 1]!;
    }
  }
  return null;
}

/** Like {@link containedReply}, but every turn with that reply, best first; for a match that must hold to the letter. */
export function containedReplies(state: EngineState, messages: readonly Message[]): TurnEntry[] {
  const best = containedReply(state, messages);
  if (best === null) return [];
  const same = replyKeys(best.reply).flatMap((key) => state.replies.get(key) ?? []);
  return [...new Set([best, ...same.reverse()])].slice(0, CANDIDATES_MAX);
}

/**
 * The reply came back beyond recognition, or not at all: the request begins with a turn's own messages and goes on.
 * `rewritten`: an assistant message stands where the reply was; `dropped`: another message does.
 */
export function rewrittenReply(turn: TurnEntry, messages: readonly Message[]): "rewritten" | "dropped" | null {
  const at = turn.history.length;
  if (messages.length <= at) return null;
  const same = historyMessages(turn.history).every((message, i) => {
    const other = messages[i]!;
    return recognisable(message, other) || equalButForIds(message, other);
  });
  if (!same) return null;
  return messages[at]!.role === "assistant" ? "rewritten" : "dropped";
}

/** True when two requests began as the same conversation: the same first user message. */
export function sameConversation(turn: TurnEntry, messages: readonly Message[]): boolean {
  const earlier = firstUserText(historyMessages(turn.history));
  return earlier !== null && earlier === firstUserText(messages);
}

function firstUserText(messages: readonly Message[]): string | null {
  const user = messages.find((message) => canonicalMessage(message).role === "user");
  return user === undefined ? null : flatText(user.content).trim();
}
