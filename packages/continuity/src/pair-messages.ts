/** Do the messages at one place stand for the same message, however it was rewritten, or was another one put in, left out or swapped in? */
import type { Message, ToolCall } from "@tito/format";
import type { DriftPlace } from "./explain-misalignment.js";
import { sameJson } from "./json-text.js";
import { canonicalMessage } from "./message.js";
import { recognisable, sameIdentity } from "./same-identity.js";

/** Messages behind the place in which either of the two is looked for. */
const MOVED_MAX = 8;

/** True when the messages at the place are one message before and after. */
export function pairsUp({ earlier, next, index }: DriftPlace): boolean {
  const stored = earlier[index]!;
  const returned = next[index]!;
  const sameByIds = sameIdentity(stored, returned);
  if (sameByIds && (hasIds(stored) || sameText(stored, returned))) return true;
  if (canonicalMessage(stored).role !== canonicalMessage(returned).role) return false;
  const behind = (messages: readonly Message[]): readonly Message[] => messages.slice(index + 1, index + 1 + MOVED_MAX);
  if (isNamed(stored) && behind(next).some((message) => recognisable(stored, message))) return false;
  if (isNamed(returned) && behind(earlier).some((message) => recognisable(returned, message))) return false;
  if (sameByIds) return true;
  return stored.role === "tool" ? sameText(stored, returned) : sharesSomething(stored, returned);
}

/** An empty message is recognised everywhere, so it says nothing. */
function isNamed(message: Message): boolean {
  return hasIds(message) || textOf(message) !== "";
}

const hasIds = (message: Message): boolean =>
  message.tool_call_id !== undefined || (message.tool_calls ?? []).length > 0;

const textOf = (message: Message): string => canonicalMessage(message).text.trim();
const sameText = (a: Message, b: Message): boolean => textOf(a) === textOf(b);

/** Two assistant messages with other call ids: the returned one holds nothing new, or keeps a call, its text or its reasoning. */
function sharesSomething(stored: Message, returned: Message): boolean {
  const before = stored.tool_calls ?? [];
  const after = returned.tool_calls ?? [];
  if (before.some((call) => after.some((other) => sameCall(call, other)))) return true;
  const { reasoning } = canonicalMessage(stored);
  if (reasoning !== "" && reasoning === canonicalMessage(returned).reasoning) return true;
  if (sameText(stored, returned)) return textOf(stored) !== "" || after.length === 0;
  return false;
}

function sameCall(a: ToolCall, b: ToolCall): boolean {
  return a.id === b.id || (a.name === b.name && sameJson(a.arguments, b.arguments));
}
