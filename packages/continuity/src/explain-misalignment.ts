/** Names the cause where whole messages were added, left out, replaced or merged. */
import type { Message } from "@tito/format";
import { type Drift, drift } from "./drift-causes.js";
import { flatText } from "./message.js";
import { type HarnessRules, withoutVolatile } from "./rules.js";
import { recognisable, sameIdentity } from "./same-identity.js";

/** A place where the two histories part. */
export interface DriftPlace {
  earlier: readonly Message[];
  next: readonly Message[];
  index: number;
  rules: HarnessRules;
  summaries: readonly string[];
}

/** Shorter summaries are too easily found by chance inside another text. */
const SUMMARY_CHARACTERS_MIN = 16;
/** Messages after the place of a difference that are looked at for a summary. */
const SUMMARY_MESSAGES = 4;
/** Messages that a harness puts in between; more is another history. */
const INSERTED_MAX = 4;

/** The message at the place is another one, or the same role with a text that was replaced as a whole. */
export function explainMisalignment(place: DriftPlace): Drift {
  const { earlier, next, index } = place;
  const stored = earlier[index]!;
  const returned = next[index]!;
  const where = `message ${index}`;
  const summary = summaryIn(next.slice(index, index + SUMMARY_MESSAGES), place.rules, place.summaries);
  if (summary !== null) return drift("compaction", `${where}: ${summary}`);
  if (mergesCalls(stored, returned)) return drift("merged_turn", `${where}: the reply's tool calls among others`);
  const inserted = indexOfMessage(next, stored, index + 1, index + INSERTED_MAX);
  if (inserted >= 0) return explainInsertion(next.slice(index, inserted), { where, first: index === 0 }, place.rules);
  const isReply = index === earlier.length - 1;
  if (isReply && returned.role !== "assistant")
    return drift("reply_dropped", `${where}: the reply is not in the history`);
  const leftOut = indexOfMessage(earlier, returned, index + 1, earlier.length - 1);
  if (leftOut >= 0 && earlier.slice(index, leftOut).every(isSystem))
    return drift("system_changed", `${where}: the system message was left out`);
  if (leftOut >= 0) return drift("history_truncated", `${where}: ${leftOut - index} message(s) left out`);
  if (isReplacedByLess(place))
    return drift("compaction", `${where}: fewer messages took the place of the earlier ones`);
  if (sameIdentity(stored, returned)) return drift("content_changed", `${where} (${stored.role}): another text`);
  if (stored.role === "assistant" && returned.role === "assistant")
    return drift("ghost_turn", `${where}: an assistant message that was not sampled in this form`);
  return drift("unknown", `${where}: ${stored.role} became ${returned.role}`);
}

/** What shows that one of these messages is a summary, in words, or null. */
export function summaryIn(
  messages: readonly Message[],
  rules: HarnessRules,
  summaries: readonly string[],
): string | null {
  for (const message of messages) {
    const text = flatText(message.content);
    if (rules.compaction_markers.some((marker) => text.includes(marker))) return `summary marker of ${rules.harness}`;
    const known = summaries.find((summary) => summary.length >= SUMMARY_CHARACTERS_MIN && text.includes(summary));
    if (known !== undefined) return "holds the text of an earlier summary call";
  }
  return null;
}

/** True when the returned message holds all calls of the stored one, and others. */
export function mergesCalls(stored: Message, returned: Message): boolean {
  const ids = (stored.tool_calls ?? []).map((call) => call.id);
  const others = new Set((returned.tool_calls ?? []).map((call) => call.id));
  return ids.length > 0 && others.size > ids.length && ids.every((id) => others.has(id));
}

export const isSystem = (message: Message): boolean => message.role === "system" || message.role === "developer";

function indexOfMessage(messages: readonly Message[], wanted: Message, from: number, to: number): number {
  for (let i = from; i <= to && i < messages.length; i++) if (recognisable(wanted, messages[i]!)) return i;
  return -1;
}

function explainInsertion(
  inserted: readonly Message[],
  { where, first }: { where: string; first: boolean },
  rules: HarnessRules,
): Drift {
  if (inserted.some((message) => message.role === "assistant"))
    return drift("ghost_turn", `${where}: an assistant message that was never sampled was put in`);
  const volatile = inserted.map((message) => withoutVolatile(flatText(message.content), rules));
  if (volatile.every((rest) => rest.text.trim() === ""))
    return drift("volatile_text", `${where}: ${volatile.flatMap((rest) => rest.names).join(", ")} put in`);
  if (first && inserted.every(isSystem)) return drift("system_changed", `${where}: a system message was put in`);
  return drift("history_edited", `${where}: ${inserted.length} message(s) put in`);
}

/** From the place on the request is shorter, and what stands there was not in the history. */
function isReplacedByLess(place: DriftPlace): boolean {
  const { earlier, next, index } = place;
  if (next.length >= earlier.length || earlier.length - index < 2) return false;
  const tail = next
    .slice(index + 1)
    .some((message) => indexOfMessage(earlier, message, index, earlier.length - 1) >= 0);
  return tail || !next.slice(index).some((message) => message.role === "assistant");
}
