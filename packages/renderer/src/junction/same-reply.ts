/** Is a parsed reply the one that was printed? */

import { PyFloat } from "@huggingface/jinja";
import type { Message } from "@tito/format";
import { type JsonValue, tryLosslessJson } from "../template/lossless-json.js";

/** Equal as far as a template can show it: text without the white space at its ends, arguments as values. */
export function sameReply(parsed: Message, wanted: Message): boolean {
  const text = (content: unknown): string => (typeof content === "string" ? content : "").trim();
  const calls = (message: Message): string[] =>
    (message.tool_calls ?? []).map((call) => `${call.name} ${canonicalArguments(call.arguments)}`);
  return (
    text(parsed.content) === text(wanted.content) &&
    text(parsed.reasoning) === text(wanted.reasoning) &&
    calls(parsed).join("\n") === calls(wanted).join("\n")
  );
}

/** One spelling for equal values, at every depth: members sorted, numbers with all their digits, `1` and `1.0` apart. Text that is no JSON stays as it is. */
export function canonicalArguments(text: string): string {
  const value = tryLosslessJson(text);
  return value === undefined ? text : spell(value);
}

function spell(value: JsonValue): string {
  if (Array.isArray(value)) return `[${value.map(spell).join(",")}]`;
  if (value instanceof Map) {
    const members = [...value].sort(([a], [b]) => (a < b ? -1 : 1));
    return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${spell(member)}`).join(",")}}`;
  }
  if (value instanceof PyFloat) return `float ${value.value}`;
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}
