/** The canonical form of a message, and how two spellings of one message differ. Never used to change a token. */
import type { ContentPart, Message, ToolCall } from "@tito/format";
import { canonicalJson, sameJson } from "./json-text.js";
import { type HarnessRules, NO_RULES } from "./rules.js";

/** A message without the freedom of spelling that harnesses take. */
export interface CanonicalMessage {
  /** `developer` and `system` are one role. */
  role: "system" | "user" | "assistant" | "tool";
  /** Text parts joined; null, "" and absent are equal; a part that is not text leaves a mark. */
  text: string;
  /** Trimmed; absent is "". */
  reasoning: string;
  tool_calls: ToolCall[];
  tool_call_id: string | null;
}

/** One way in which two messages differ. The first group keeps a checkpoint, the second does not. */
export type MessageDifference =
  | "content_shape"
  | "role_alias"
  | "arguments_format"
  | "name_listed"
  | "reasoning_trimmed"
  | "reasoning_absent"
  | BreakingDifference;
export type BreakingDifference =
  | "role"
  | "tool_call_ids"
  | "tool_call_ids_renamed"
  | "tool_call_id"
  | "name"
  | "arguments"
  | "content_trimmed"
  | "content"
  | "reasoning";

const KEEPS: ReadonlySet<MessageDifference> = new Set([
  "content_shape",
  "role_alias",
  "arguments_format",
  "name_listed",
  "reasoning_trimmed",
  "reasoning_absent",
]);

/** All text of a content field; what is not text leaves a mark that no text can equal. */
export function flatText(content: string | ContentPart[] | null | undefined): string {
  if (content === null || content === undefined) return "";
  if (typeof content === "string") return content;
  return content.map((part) => (part.type === "text" ? part.text : `\u0000${part.kind}\u0000`)).join("");
}

export function canonicalMessage(message: Message): CanonicalMessage {
  return {
    role: message.role === "developer" ? "system" : message.role,
    text: flatText(message.content),
    reasoning: (message.reasoning ?? "").trim(),
    tool_calls: (message.tool_calls ?? []).map((call) => ({
      id: call.id,
      name: call.name,
      arguments: canonicalJson(call.arguments) ?? call.arguments,
    })),
    tool_call_id: message.tool_call_id ?? null,
  };
}

/** Every difference between a message as it was stored and as it came back, in the order in which templates print the fields. */
export function compareMessages(
  stored: Message,
  returned: Message,
  rules: HarnessRules = NO_RULES,
): MessageDifference[] {
  const out: MessageDifference[] = [];
  if (stored === returned) return out;
  if (stored.role !== returned.role) out.push(roleOf(stored) === roleOf(returned) ? "role_alias" : "role");
  if ((stored.tool_call_id ?? null) !== (returned.tool_call_id ?? null)) out.push("tool_call_id");
  compareReasoning(stored.reasoning ?? "", returned.reasoning ?? "", out);
  compareContent(stored.content, returned.content, out);
  compareCalls(stored.tool_calls ?? [], returned.tool_calls ?? [], rules, out);
  return out;
}

function roleOf(message: Message): CanonicalMessage["role"] {
  return message.role === "developer" ? "system" : message.role;
}

function compareReasoning(stored: string, returned: string, out: MessageDifference[]): void {
  if (stored === returned) return;
  if (stored.trim() === returned.trim()) out.push("reasoning_trimmed");
  else out.push(returned.trim() === "" ? "reasoning_absent" : "reasoning");
}

function compareContent(stored: Message["content"], returned: Message["content"], out: MessageDifference[]): void {
  if (stored === returned) return;
  const left = flatText(stored);
  const right = flatText(returned);
  if (left !== right) out.push(left.trim() === right.trim() ? "content_trimmed" : "content");
  else if (!sameShape(stored, returned)) out.push("content_shape");
}

function sameShape(a: Message["content"], b: Message["content"]): boolean {
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length;
  return a === b;
}

function compareCalls(
  stored: readonly ToolCall[],
  returned: readonly ToolCall[],
  rules: HarnessRules,
  out: MessageDifference[],
): void {
  const sameIds = stored.length === returned.length && stored.every((call, i) => call.id === returned[i]!.id);
  if (!sameIds) {
    const renamed =
      stored.length === returned.length &&
      stored.length > 0 &&
      stored.some((call, i) => sameCall(call, returned[i]!, rules));
    out.push(renamed ? "tool_call_ids_renamed" : "tool_call_ids");
    if (!renamed) return;
  }
  const found = new Set<MessageDifference>();
  stored.forEach((call, i) => {
    const other = returned[i]!;
    if (call.name !== other.name) found.add(isRename(rules, call.name, other.name) ? "name_listed" : "name");
    if (call.arguments === other.arguments) return;
    found.add(sameJson(call.arguments, other.arguments) ? "arguments_format" : "arguments");
  });
  for (const kind of ["name_listed", "name", "arguments_format", "arguments"] as const)
    if (found.has(kind)) out.push(kind);
}

/** Two calls that say the same in one respect at least, whatever their ids are. */
function sameCall(a: ToolCall, b: ToolCall, rules: HarnessRules): boolean {
  return a.name === b.name || isRename(rules, a.name, b.name) || sameJson(a.arguments, b.arguments);
}

function isRename(rules: HarnessRules, from: string, to: string): boolean {
  return rules.renames.some((rename) => rename.sampled === from && rename.echoed === to);
}

/** The verdict of the matching rule in docs/continuity.md: which differences were kept, and the first that makes it another message. */
export type SameMessage = { same: boolean; kept: MessageDifference[]; differs: BreakingDifference | null };

/** Is it the same message, for the purpose of keeping its sampled ids? Equal tool-call ids identify it; the rest may differ only in spelling. */
export function sameMessage(stored: Message, returned: Message, options: { rules?: HarnessRules } = {}): SameMessage {
  const differences = compareMessages(stored, returned, options.rules);
  const kept = differences.filter((difference) => KEEPS.has(difference));
  const breaking = differences.filter((difference): difference is BreakingDifference => !KEEPS.has(difference));
  return { same: breaking.length === 0, kept, differs: breaking[0] ?? null };
}
