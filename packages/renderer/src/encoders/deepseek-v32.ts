/** DeepSeek V3.2: prompts as the vendor's encoder writes them (its `encoding_dsv32.py`, called as vLLM calls it). */
import { type Message, TitoError, type ToolDefinition } from "@tito/format";
import type { ValueGuard } from "../tokenizer/value-guard.js";
import { DEEPSEEK, dropSpentReasoning, dsmlCalls, lastUserIndex, textOf, toolSchemas } from "./dsml.js";
import type { PromptWriter } from "./prompt-writer.js";

const CALLS = "function_calls";

const toolsSection = (schemas: string): string => `## Tools
You have access to a set of tools you can use to answer the user's question.
You can invoke functions by writing a "<｜DSML｜${CALLS}>" block like the following as part of your reply to the user:
<｜DSML｜${CALLS}>
<｜DSML｜invoke name="$FUNCTION_NAME">
<｜DSML｜parameter name="$PARAMETER_NAME" string="true|false">$PARAMETER_VALUE</｜DSML｜parameter>
...
</｜DSML｜invoke>
<｜DSML｜invoke name="$FUNCTION_NAME2">
...
</｜DSML｜invoke>
</｜DSML｜${CALLS}>
String and scalar parameters should be specified as is without any escaping or quotes, while lists and objects should use JSON format. The "string" attribute should be set to "true" for string type parameters and "false" for other types (numbers, booleans, arrays, objects).
If the thinking_mode is enabled, then after function results you should strongly consider outputting a thinking block. Here is an example:
<｜DSML｜${CALLS}>
...
</｜DSML｜${CALLS}>
<function_results>
...
</function_results>
<think>...thinking about results</think>
Here are the functions available in JSONSchema format:
<functions>
${schemas}
</functions>
`;

const refuse = (why: string): never => {
  throw new TitoError("bad_request", `DeepSeek V3.2's encoder refuses this conversation: ${why}`);
};

interface Place {
  messages: readonly Message[];
  index: number;
  lastUser: number;
  thinking: boolean;
}

function writeResult({ messages, index, lastUser, thinking }: Place, guard: ValueGuard): string {
  const asked = messages.slice(0, index).findLastIndex((message) => message.role !== "tool");
  const calls = messages[asked]?.role === "assistant" ? (messages[asked]?.tool_calls?.length ?? 0) : 0;
  const order = index - asked;
  if (calls < order) refuse("a tool result without a call");
  const head = order === 1 ? "\n\n<function_results>" : "";
  const body = `\n<result>${textOf(messages[index]!, guard)}</result>`;
  if (order < calls) return head + body;
  const mark = index >= lastUser && thinking ? DEEPSEEK.think : DEEPSEEK.think_end;
  return `${head}${body}\n</function_results>\n\n${mark}`;
}

function writeAssistant({ messages, index, lastUser, thinking }: Place, guard: ValueGuard): string {
  const message = messages[index]!;
  const shown = thinking && index > lastUser;
  const reasoning = message.reasoning ?? "";
  if (shown && reasoning === "" && (message.tool_calls ?? []).length === 0)
    refuse("an answer without reasoning after the last user message");
  const thought = shown ? guard.protect(reasoning) + DEEPSEEK.think_end : "";
  return `${thought}${textOf(message, guard)}${dsmlCalls(message, CALLS, guard)}${DEEPSEEK.eos}`;
}

function writeMessage(place: Place, guard: ValueGuard): string {
  const { messages, index, lastUser, thinking } = place;
  const message = messages[index]!;
  const mark = index === lastUser && thinking ? DEEPSEEK.think : DEEPSEEK.think_end;
  const text = textOf(message, guard);
  switch (message.role) {
    case "system":
      return text;
    case "user":
      return `${DEEPSEEK.user}${text}${DEEPSEEK.assistant}${mark}`;
    case "developer":
      if (text === "") refuse("an empty developer message");
      return `${DEEPSEEK.user}\n\n# The user's message is: ${text}${DEEPSEEK.assistant}${mark}`;
    case "tool":
      return writeResult(place, guard);
    case "assistant":
      return writeAssistant(place, guard);
  }
}

/** Thinks when `thinking` or `enable_thinking` says so. The tools come first, before any system message. */
export const writeDeepseekV32: PromptWriter = (given, tools, guard, { given: args }) => {
  const thinking = args.thinking === true || args.enable_thinking === true;
  const offered = toolMessage(tools, guard);
  const whole: Message[] = offered === null ? [...given] : [{ role: "system", content: null }, ...given];
  const messages = thinking && given.at(-1)?.role === "user" ? dropSpentReasoning(whole) : whole;
  const lastUser = lastUserIndex(messages);
  const written = messages.map((_message, index) => writeMessage({ messages, index, lastUser, thinking }, guard));
  return [DEEPSEEK.bos, ...(offered === null ? written : [offered, ...written.slice(1)])];
};

const toolMessage = (tools: readonly ToolDefinition[], guard: ValueGuard): string | null =>
  tools.length === 0 ? null : `\n\n${toolsSection(toolSchemas(tools, guard))}`;
