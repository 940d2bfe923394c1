/** By what a later request can be recognised to contain an earlier reply. */
import type { Message } from "@tito/format";
import { flatText } from "./message.js";

/** Replies with the same text that are looked at, newest first. */
const TEXT_PREFIX = "text:";
const CALL_PREFIX = "call:";

/** The tool-call ids of an assistant message; without tool calls its trimmed text; nothing for an empty message. */
export function replyKeys(message: Message): string[] {
  if (message.role !== "assistant") return [];
  const calls = message.tool_calls ?? [];
  if (calls.length > 0) return calls.map((call) => CALL_PREFIX + call.id);
  const text = flatText(message.content).trim();
  return text === "" ? [] : [TEXT_PREFIX + text];
}
