/** Message histories that share what they have in common, so that a conversation's messages are held once. */
import type { Message } from "@tito/format";

/** The first `keep` messages of `base`, then `own`. */
export interface History {
  base: History | null;
  keep: number;
  own: readonly Message[];
  length: number;
}

/** A history that refers to the first `keep` messages of another one. */
export function extendHistory(base: History | null, keep: number, own: readonly Message[]): History {
  return { base: keep === 0 ? null : base, keep, own, length: keep + own.length };
}

/** All messages of a history, oldest first. The messages are shared, the array is new. */
export function historyMessages(history: History): Message[] {
  const out = new Array<Message>(history.length);
  let end = history.length;
  for (let part: History | null = history; part !== null && end > 0; part = part.base) {
    for (let i = end - 1; i >= part.keep; i--) out[i] = part.own[i - part.keep]!;
    end = Math.min(end, part.keep);
  }
  return out;
}

/** How many leading messages are the same to the letter: nothing that a template could see differs. */
export function keptMessages(earlier: readonly Message[], next: readonly Message[]): number {
  const limit = Math.min(earlier.length, next.length);
  for (let i = 0; i < limit; i++) if (!identicalMessages(earlier[i]!, next[i]!)) return i;
  return limit;
}

/** Deep equality of two plain messages, absent keys apart from empty ones. */
function identicalMessages(a: Message, b: Message): boolean {
  return (
    a === b ||
    (a.role === b.role &&
      a.reasoning === b.reasoning &&
      a.tool_call_id === b.tool_call_id &&
      a.name === b.name &&
      identicalContent(a.content, b.content) &&
      identicalCalls(a.tool_calls, b.tool_calls))
  );
}

function identicalContent(a: Message["content"], b: Message["content"]): boolean {
  if (!Array.isArray(a) || !Array.isArray(b)) return a === b;
  if (a.length !== b.length) return false;
  return a.every((part, i) => {
    const other = b[i]!;
    if (part.type === "text") return other.type === "text" && part.text === other.text;
    return other.type === "other" && part.kind === other.kind;
  });
}

function identicalCalls(a: Message["tool_calls"], b: Message["tool_calls"]): boolean {
  if (a === undefined || b === undefined) return a === b;
  if (a.length !== b.length) return false;
  return a.every((call, i) => {
    const other = b[i]!;
    return call.id === other.id && call.name === other.name && call.arguments === other.arguments;
  });
}
