/** Which part of a sampled reply a place lies in. With texts it is read off; with ids alone it is estimated from the lengths of the parts. */
import type { Message } from "@tito/format";
import type { IdPlace } from "./id-place.js";
import { flatText } from "./message.js";

/** `end`: the id that ends the turn. */
export type ReplyPart = "reasoning" | "content" | "tool_calls" | "end";

export interface PartOfReply {
  part: ReplyPart;
  /** False: another part could have been meant. */
  sure: boolean;
}

/**
 * The texts of both sides from where the reply begins (or from the difference, where that lies before it): the earlier line's up to the
 * end of the reply, the prompt's at least as far.
 */
export interface DifferenceTexts {
  earlier: string;
  now: string;
}

/** Characters of a call's form around its name and arguments, roughly. */
const CALL_FORM_CHARACTERS = 24;
/** Share of a reply around the border of two parts where an estimate is not sure. */
const BORDER = 0.15;

/** The part by ids: exact at the reply's first and last id and where it has one part only. */
export function estimatedPart(reply: Message, place: IdPlace & { reply: { start: number; end: number } }): PartOfReply {
  const { start, end } = place.reply;
  const sizes = partSizes(reply);
  const filled = sizes.filter(([, size]) => size > 0);
  const first = filled[0]?.[0] ?? "content";
  if (place.at <= start) return { part: first, sure: true };
  if (place.at === end - 1) return { part: "end", sure: true };
  if (filled.length <= 1) return { part: first, sure: true };
  const total = filled.reduce((sum, [, size]) => sum + size, 0);
  const position = (place.at - start) / (end - start);
  let border = 0;
  let sure = true;
  let part: ReplyPart = first;
  for (const [name, size] of filled) {
    if (position >= border && border > 0) part = name;
    if (border > 0 && Math.abs(position - border) < BORDER) sure = false;
    border += size / total;
  }
  return { part, sure };
}

/** Characters of reasoning, content and calls. */
function partSizes(reply: Message): [Exclude<ReplyPart, "end">, number][] {
  const calls = reply.tool_calls ?? [];
  return [
    ["reasoning", (reply.reasoning ?? "").trim().length],
    ["content", flatText(reply.content).trim().length],
    [
      "tool_calls",
      calls.reduce((sum, call) => sum + CALL_FORM_CHARACTERS + call.name.length + call.arguments.length, 0),
    ],
  ];
}

/** Share of the reply's characters that its reasoning has. */
export function reasoningShare(reply: Message): number {
  const sizes = partSizes(reply);
  const total = sizes.reduce((sum, [, size]) => sum + size, 0);
  return total === 0 ? 0 : sizes[0]![1] / total;
}

/** The part in which the two texts part; null when the reply's whole text is there. */
export function partInText(reply: Message, texts: DifferenceTexts): ReplyPart | null {
  const { earlier, now } = texts;
  let at = 0;
  while (at < earlier.length && earlier[at] === now[at]) at++;
  if (at === earlier.length) return null;
  const afterReasoning = endOf(earlier, (reply.reasoning ?? "").trim(), 0);
  if (at < afterReasoning) return "reasoning";
  const afterContent = endOf(earlier, flatText(reply.content).trim(), afterReasoning);
  if (at < afterContent) return "content";
  const calls = reply.tool_calls ?? [];
  const from = calls.length === 0 ? -1 : callStart(earlier, calls[0]!.name, afterContent);
  if (from < 0) return at < earlier.length ? "end" : null;
  return at < from ? "content" : "tool_calls";
}

function endOf(text: string, part: string, from: number): number {
  const found = part === "" ? -1 : text.indexOf(part, from);
  return found < 0 ? from : found + part.length;
}

/** Where the text of the first call begins: its name, or the brace of a call that is one JSON object. */
function callStart(text: string, name: string, from: number): number {
  const found = [text.indexOf("{", from), name === "" ? -1 : text.indexOf(name, from)].filter((at) => at >= 0);
  return found.length === 0 ? -1 : Math.min(...found);
}
