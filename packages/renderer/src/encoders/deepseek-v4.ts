/** DeepSeek V4: prompts as the vendor's encoder writes them (its `encoding_dsv4.py`, called as vLLM calls it). */
import { type Message, TitoError } from "@tito/format";
import type { ValueGuard } from "../tokenizer/value-guard.js";
import { DEEPSEEK, dropSpentReasoning, dsmlCalls, lastUserIndex, textOf, toolSchemas } from "./dsml.js";
import type { PromptWriter } from "./prompt-writer.js";

const CALLS = "tool_calls";

const EFFORTS: ReadonlyMap<string, string> = new Map([
  ["low", ""],
  [
    "high",
    "Reasoning Effort: Absolute maximum with no shortcuts permitted.\nYou MUST be very thorough in your thinking and comprehensively decompose the problem to resolve the root cause, rigorously stress-testing your logic against all potential paths, edge cases, and adversarial scenarios.\nExplicitly write out your entire deliberation process, documenting every intermediate step, considered alternative, and rejected hypothesis to ensure absolutely no assumption is left unchecked.\n\n",
  ],
  [
    "max",
    "Reasoning Effort: Beyond maximum — exhaustive, relentless, and uncompromising.\nYou MUST reason with the utmost depth and rigor, leaving absolutely nothing to chance: exhaustively decompose the problem into its most fundamental components, trace every causal chain to its root, and resolve the underlying cause rather than any surface symptom.\nDo not stop reasoning until you have independently verified the solution from multiple angles and are certain that no assumption remains unchecked and no error remains undiscovered.\n\n",
  ],
]);

const toolsSection = (schemas: string): string => `## Tools

You have access to a set of tools to help answer the user's question. You can invoke tools by writing a "<｜DSML｜${CALLS}>" block like the following:

<｜DSML｜${CALLS}>
<｜DSML｜invoke name="$TOOL_NAME">
<｜DSML｜parameter name="$PARAMETER_NAME" string="true|false">$PARAMETER_VALUE</｜DSML｜parameter>
...
</｜DSML｜invoke>
<｜DSML｜invoke name="$TOOL_NAME2">
...
</｜DSML｜invoke>
</｜DSML｜${CALLS}>

String parameters should be specified as is and set \`string="true"\`. For all other types (numbers, booleans, arrays, objects), pass the value in JSON format and set \`string="false"\`.

If thinking_mode is enabled (triggered by <think>), you MUST output your complete reasoning inside <think>...</think> BEFORE any tool calls or final response.

Otherwise, output directly after </think> with tool calls or final response.

### Available Tool Schemas

${schemas}

You MUST strictly follow the above defined tool name and parameter schemas to invoke tool calls.
`;

/** A turn of the prompt: users and tool results that follow each other are one. */
interface Turn {
  message: Message;
  /** What a user's turn consists of: user messages and results, in order. */
  parts: Message[];
}

function mergeTurns(messages: readonly Message[]): Turn[] {
  const turns: Turn[] = [];
  for (const message of messages) {
    const last = turns.at(-1);
    const asUser = message.role === "user" || message.role === "tool";
    if (asUser && last !== undefined && last.parts.length > 0) last.parts.push(message);
    else turns.push({ message: asUser ? { role: "user", content: null } : message, parts: asUser ? [message] : [] });
  }
  return turns;
}

/** Results in the order of the calls that they answer; a user's words stay where they are. */
function sortResults(turns: readonly Turn[]): void {
  let order = new Map<string, number>();
  for (const { message, parts } of turns) {
    if (message.role === "assistant" && (message.tool_calls ?? []).length > 0)
      order = new Map(message.tool_calls!.map((call, i) => [call.id, i]));
    const results = parts.filter((part) => part.role === "tool");
    if (results.length < 2 || order.size === 0) continue;
    const place = (part: Message): number => order.get(part.tool_call_id ?? "") ?? 0;
    results.sort((a, b) => place(a) - place(b));
    for (const [i, part] of parts.entries()) if (part.role === "tool") parts[i] = results.shift()!;
  }
}

interface Place {
  turns: readonly Turn[];
  index: number;
  lastUser: number;
  thinking: boolean;
  drop: boolean;
}

function writeBody(
  { turns, index, lastUser, thinking, drop }: Place,
  schemas: string | null,
  guard: ValueGuard,
): string {
  const { message, parts } = turns[index]!;
  const text = textOf(message, guard);
  switch (message.role) {
    case "system":
      return schemas === null ? text : `${text}\n\n${toolsSection(schemas)}`;
    case "developer":
      if (text === "")
        throw new TitoError(
          "bad_request",
          "DeepSeek V4's encoder refuses this conversation: an empty developer message",
        );
      return DEEPSEEK.user + text;
    case "assistant": {
      const shown = thinking && (!drop || index > lastUser);
      const thought = shown ? guard.protect(message.reasoning ?? "") + DEEPSEEK.think_end : "";
      return `${thought}${text}${dsmlCalls(message, CALLS, guard)}${DEEPSEEK.eos}`;
    }
    default: {
      const written = parts.map((part) =>
        part.role === "tool" ? `<tool_result>${textOf(part, guard)}</tool_result>` : textOf(part, guard),
      );
      return DEEPSEEK.user + written.join("\n\n");
    }
  }
}

/** What opens the assistant's turn behind a message; empty where none begins. */
function opening({ turns, index, lastUser, thinking, drop }: Place): string {
  const { role } = turns[index]!.message;
  const next = turns[index + 1]?.message.role;
  if (role === "assistant" || (next !== undefined && next !== "assistant")) return "";
  return DEEPSEEK.assistant + (thinking && (!drop || index >= lastUser) ? DEEPSEEK.think : DEEPSEEK.think_end);
}

function effortOf(given: Readonly<Record<string, unknown>>): { thinking: boolean; prefix: string } {
  const asked = given.reasoning_effort;
  const unsaid = given.thinking === undefined && given.enable_thinking === undefined;
  const thinking = (unsaid || given.thinking === true || given.enable_thinking === true) && asked !== "none";
  const low = asked === "low" || asked === "minimal" || asked === "medium";
  const effort = asked === "max" ? "max" : low ? "low" : "high";
  return { thinking, prefix: thinking ? EFFORTS.get(effort)! : "" };
}

/** Thinks unless told otherwise. Tools stand in the first system message; with tools no reasoning is left out. */
export const writeDeepseekV4: PromptWriter = (given, tools, guard, { given: args }) => {
  const { thinking, prefix } = effortOf(args);
  const schemas = tools.length === 0 ? null : toolSchemas(tools, guard);
  const drop = schemas === null && args.drop_thinking !== false;
  const system = given.findIndex((message) => message.role === "system");
  const messages = schemas !== null && system < 0 ? [{ role: "system" as const, content: null }, ...given] : given;
  const merged = mergeTurns(messages);
  sortResults(merged);
  const turns = thinking && drop ? dropTurns(merged) : merged;
  const lastUser = lastUserIndex(turns.map((turn) => turn.message));
  const withTools = turns.findIndex((turn) => turn.message.role === "system");
  const written = turns.map((_turn, index) => {
    const place = { turns, index, lastUser, thinking, drop };
    return writeBody(place, index === withTools ? schemas : null, guard) + opening(place);
  });
  return [DEEPSEEK.bos, ...(written.length > 0 ? [prefix] : []), ...written];
};

/** Users' turns are the same objects afterwards; assistants, which have no parts, may be copies. */
function dropTurns(turns: readonly Turn[]): Turn[] {
  const parts = new Map(turns.map((turn) => [turn.message, turn.parts]));
  return dropSpentReasoning(turns.map((turn) => turn.message)).map((message) => ({
    message,
    parts: parts.get(message) ?? [],
  }));
}
