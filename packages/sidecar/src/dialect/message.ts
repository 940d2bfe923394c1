/** The assistant message that a reply's events add up to: what is stored as returned to the harness. */
import type { Message, ToolCall } from "@tito/format";
import type { ReplyEvent } from "./neutral.js";

export function assembleMessage(events: readonly ReplyEvent[]): Message {
  let content: string | null = null;
  let reasoning: string | null = null;
  const calls = new Map<number, ToolCall>();
  for (const event of events) {
    if (event.type === "content") content = (content ?? "") + event.text;
    else if (event.type === "reasoning") reasoning = (reasoning ?? "") + event.text;
    else if (event.type === "tool_call") calls.set(event.index, { id: event.id, name: event.name, arguments: "" });
    else if (event.type === "arguments") {
      const call = calls.get(event.index);
      if (call !== undefined) call.arguments += event.text;
    }
  }
  return {
    role: "assistant",
    content: content ?? (calls.size > 0 ? null : ""),
    ...(reasoning === null ? {} : { reasoning }),
    ...(calls.size === 0 ? {} : { tool_calls: [...calls.values()] }),
  };
}

/** Text of an opening tool call that an engine's parser gave up on and passed through. */
const RAW_CALL = /<tool_call>|<\|tool_call|<function=/;

/** A call of no tool: whoever parsed it, no harness can run it. */
export function callsNothing(message: Message): boolean {
  return (message.tool_calls ?? []).some(({ name }) => name.trim() === "");
}

/** True when the output did not parse: a call without a name, arguments that are no JSON, or the text of a call in place of a call. */
export function isMalformed(message: Message): boolean {
  const calls = message.tool_calls ?? [];
  if (callsNothing(message)) return true;
  if (calls.some((call) => !isJson(call.arguments))) return true;
  return calls.length === 0 && typeof message.content === "string" && RAW_CALL.test(message.content);
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
