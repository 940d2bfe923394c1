/**
 * gpt-oss: conversations as the vendor's harmony library renders them, which serving engines use instead of the chat template.
 * Chunks hold special tokens as text and guarded values, like a template's output.
 */
import type { Message, ToolDefinition } from "@tito/format";
import type { PromptWriter } from "../encoders/prompt-writer.js";
import { contentText } from "../template/message-values.js";
import type { ValueGuard } from "../tokenizer/value-guard.js";
import { toolsSection } from "./typescript-schema.js";

export interface HarmonyOptions {
  /** Current date in the system message, YYYY-MM-DD. */
  date: string;
  reasoningEffort: string;
  generationPrompt: boolean;
}

/** One harmony message before it is written. */
interface Part {
  channel: "analysis" | "commentary" | "final" | null;
  author: string;
  recipient: string | null;
  contentType: string | null;
  text: string;
}

const plain = (author: string, text: string): Part => ({
  channel: null,
  author,
  recipient: null,
  contentType: null,
  text,
});

function systemText(date: string, effort: string, hasTools: boolean): string {
  const identity = `You are ChatGPT, a large language model trained by OpenAI.\nKnowledge cutoff: 2024-06\nCurrent date: ${date}`;
  const channels = "# Valid channels: analysis, commentary, final. Channel must be included for every message.";
  const tools = hasTools ? "\nCalls to these tools must go to the commentary channel: 'functions'." : "";
  return `${identity}\n\nReasoning: ${effort}\n\n${channels}${tools}`;
}

function developerText(instructions: string, tools: readonly ToolDefinition[]): string {
  const sections = instructions === "" ? [] : ["# Instructions", instructions];
  if (tools.length > 0) sections.push(toolsSection(tools));
  return sections.join("\n\n");
}

function assistantParts(message: Message): Part[] {
  const assistant = (channel: "analysis" | "commentary" | "final", text: string): Part => ({
    ...plain("assistant", text),
    channel,
  });
  const parts: Part[] = [];
  const text = contentText(message.content) ?? "";
  const calls = message.tool_calls ?? [];
  if (message.reasoning !== undefined && message.reasoning !== "") parts.push(assistant("analysis", message.reasoning));
  if (calls.length === 0) parts.push(assistant("final", text));
  else if (text !== "") parts.push(assistant("commentary", text));
  for (const call of calls) {
    parts.push({
      ...assistant("commentary", call.arguments),
      recipient: `functions.${call.name}`,
      contentType: "json",
    });
  }
  return parts;
}

function conversationParts(
  messages: readonly Message[],
  tools: readonly ToolDefinition[],
  options: HarmonyOptions,
): Part[] {
  const leads = messages[0]?.role === "system" || messages[0]?.role === "developer";
  const instructions = leads ? (contentText(messages[0]?.content) ?? "") : "";
  const parts = [plain("system", systemText(options.date, options.reasoningEffort, tools.length > 0))];
  if (instructions !== "" || tools.length > 0) parts.push(plain("developer", developerText(instructions, tools)));
  const names = new Map<string, string>();
  for (const message of leads ? messages.slice(1) : messages) {
    for (const call of message.tool_calls ?? []) names.set(call.id, call.name);
    const text = contentText(message.content) ?? "";
    if (message.role === "assistant") parts.push(...assistantParts(message));
    else if (message.role === "tool") {
      const name = names.get(message.tool_call_id ?? "") ?? message.name ?? "unknown";
      parts.push({ ...plain(`functions.${name}`, text), channel: "commentary", recipient: "assistant" });
    } else if (message.role === "user") parts.push(plain("user", text));
    else parts.push(plain("developer", developerText(text, [])));
  }
  return parts;
}

/** Once the conversation's last assistant message is an answer, reasoning before the first answer is left out. */
function dropSpentReasoning(parts: readonly Part[]): readonly Part[] {
  const lastSpoken = parts.findLast((part) => part.author === "assistant");
  if (lastSpoken?.channel !== "final") return parts;
  const firstFinal = parts.findIndex((part) => part.channel === "final");
  return parts.filter((part, i) => !(i < firstFinal && part.channel === "analysis"));
}

function writePart(part: Part, guard: ValueGuard): string {
  const recipient = part.recipient === null ? "" : ` to=${guard.protect(part.recipient)}`;
  const channel = part.channel === null ? "" : `<|channel|>${part.channel}`;
  const contentType = part.contentType === null ? "" : ` ${part.contentType}`;
  const end = part.author === "assistant" && part.recipient !== null ? "<|call|>" : "<|end|>";
  return `<|start|>${guard.protect(part.author)}${recipient}${channel}${contentType}<|message|>${guard.protect(part.text)}${end}`;
}

/** The conversation's text, one chunk per harmony message. */
export function writeHarmony(
  messages: readonly Message[],
  tools: readonly ToolDefinition[],
  guard: ValueGuard,
  options: HarmonyOptions,
): string[] {
  const chunks = dropSpentReasoning(conversationParts(messages, tools, options)).map((part) => writePart(part, guard));
  if (options.generationPrompt) chunks.push("<|start|>assistant");
  else if (messages.at(-1)?.role === "assistant" && chunks.at(-1)?.endsWith("<|end|>")) {
    chunks.push(`${chunks.pop()!.slice(0, -"<|end|>".length)}<|return|>`);
  }
  return chunks;
}

export const writeHarmonyPrompt: PromptWriter = (messages, tools, guard, { date, generationPrompt, given }) =>
  writeHarmony(messages, tools, guard, {
    date,
    reasoningEffort: String(given.reasoning_effort ?? "medium"),
    generationPrompt,
  });
