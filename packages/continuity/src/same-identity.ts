/** Which message is which: by the ids a harness never rewrites, else by role and text. */
import type { Message } from "@tito/format";
import { canonicalMessage } from "./message.js";

/** True when two messages stand for the same one: equal tool-call ids, the same answered call, else the same role without tool calls. */
export function sameIdentity(a: Message, b: Message): boolean {
  const left = canonicalMessage(a);
  const right = canonicalMessage(b);
  if (left.role !== right.role) return false;
  if (left.tool_call_id !== right.tool_call_id) return false;
  const ids = left.tool_calls.map((call) => call.id);
  return ids.length === right.tool_calls.length && ids.every((id, i) => id === right.tool_calls[i]!.id);
}

/** True when two messages are recognisably the same: identity by ids, and where there are none the same trimmed text. */
export function recognisable(a: Message, b: Message): boolean {
  if (!sameIdentity(a, b)) return false;
  if (a.tool_call_id !== undefined || (a.tool_calls?.length ?? 0) > 0) return true;
  return canonicalMessage(a).text.trim() === canonicalMessage(b).text.trim();
}

/** True when two messages say the same in everything but the ids of their calls. */
export function equalButForIds(a: Message, b: Message): boolean {
  const left = canonicalMessage(a);
  const right = canonicalMessage(b);
  return (
    left.role === right.role &&
    left.text.trim() === right.text.trim() &&
    left.tool_calls.length === right.tool_calls.length &&
    left.tool_calls.every((call, i) => {
      const other = right.tool_calls[i]!;
      return call.name === other.name && call.arguments === other.arguments;
    })
  );
}
