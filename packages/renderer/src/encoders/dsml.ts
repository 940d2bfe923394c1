/** What the encoders of DeepSeek V3.2 and V4 have in common: DSML calls, tool schemas, which reasoning is shown. */
import type { Message, ToolDefinition } from "@tito/format";
import { type JsonValue, tryLosslessJson } from "../template/lossless-json.js";
import { contentText } from "../template/message-values.js";
import type { ValueGuard } from "../tokenizer/value-guard.js";
import { pythonJson } from "./python-json.js";

export const DEEPSEEK = {
  bos: "<｜begin▁of▁sentence｜>",
  eos: "<｜end▁of▁sentence｜>",
  user: "<｜User｜>",
  assistant: "<｜Assistant｜>",
  think: "<think>",
  think_end: "</think>",
};

/** A message that opens an assistant's turn; tool results are read as part of the turn before. */
const opensTurn = (message: Message): boolean => message.role === "user" || message.role === "developer";

export const lastUserIndex = (messages: readonly Message[]): number => messages.findLastIndex(opensTurn);

/** The text of a message, guarded; null and absent content are empty. */
export const textOf = (message: Message, guard: ValueGuard): string =>
  guard.protect(contentText(message.content) ?? "");

/** Reasoning of turns before the last user message is left out, and so are developer messages there. */
export function dropSpentReasoning(messages: readonly Message[]): Message[] {
  const last = lastUserIndex(messages);
  return messages.flatMap((message, i) => {
    if (i >= last || message.role === "user" || message.role === "system" || message.role === "tool") return [message];
    if (message.role !== "assistant") return [];
    const { reasoning: _, ...rest } = message;
    return [rest];
  });
}

export function toolSchemas(tools: readonly ToolDefinition[], guard: ValueGuard): string {
  return tools
    .map(({ name, description, parameters, strict }) => {
      const tool = new Map<string, JsonValue>([["name", name]]);
      if (description !== undefined) tool.set("description", description);
      if (parameters !== undefined) tool.set("parameters", tryLosslessJson(parameters) ?? new Map());
      if (strict !== undefined) tool.set("strict", strict);
      return pythonJson(tool, { protect: (text) => guard.protect(text) });
    })
    .join("\n");
}

/** The block of a turn's calls, named `block`; empty when there are none. */
export function dsmlCalls(message: Message, block: string, guard: ValueGuard): string {
  const calls = message.tool_calls ?? [];
  if (calls.length === 0) return "";
  const protect = (text: string): string => guard.protect(text);
  const written = calls.map((call) => {
    const value = tryLosslessJson(call.arguments);
    const members = value instanceof Map ? [...value] : [];
    const parameters = members.map(([key, item]) => {
      const text = typeof item === "string";
      const body = text ? protect(item) : pythonJson(item, { protect });
      return `<｜DSML｜parameter name="${protect(key)}" string="${text}">${body}</｜DSML｜parameter>`;
    });
    return `<｜DSML｜invoke name="${protect(call.name)}">\n${parameters.join("\n")}\n</｜DSML｜invoke>`;
  });
  return `\n\n<｜DSML｜${block}>\n${written.join("\n")}\n</｜DSML｜${block}>`;
}
