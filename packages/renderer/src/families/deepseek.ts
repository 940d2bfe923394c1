/** DeepSeek V3 and V3.1: calls between tokens of their own, arguments as JSON. */

import { THINK } from "./hermes.js";
import { isJsonObject } from "./json-slices.js";
import type { Parse, ParsedCall } from "./output.js";
import { takeReasoning } from "./reasoning.js";
import { findToken, holdsMark, isToken, rawText, type Span } from "./spans.js";

export const DEEPSEEK_TOKENS = {
  calls: "<｜tool▁calls▁begin｜>",
  calls_end: "<｜tool▁calls▁end｜>",
  call: "<｜tool▁call▁begin｜>",
  call_end: "<｜tool▁call▁end｜>",
  separator: "<｜tool▁sep｜>",
};

/** V3 writes `function SEP name` and a fenced block, V3.1 `name SEP arguments`. */
export type DeepseekForm = "fenced" | "bare";

const FENCE = /^([^\n]+)\n```json\n([\s\S]*)\n```$/;

function readCall(spans: readonly Span[], form: DeepseekForm): ParsedCall | null {
  const separator = findToken(spans, DEEPSEEK_TOKENS.separator);
  if (separator < 0) return null;
  const before = rawText(spans.slice(0, separator));
  const after = rawText(spans.slice(separator + 1));
  const fenced = form === "fenced" ? FENCE.exec(after) : null;
  if (form === "fenced" && (fenced === null || before !== "function")) return null;
  const call = fenced === null ? { name: before, arguments: after } : { name: fenced[1]!, arguments: fenced[2]! };
  return call.name.trim() !== "" && isJsonObject(call.arguments) ? call : null;
}

function readCalls(spans: readonly Span[], form: DeepseekForm): ParsedCall[] | null {
  const calls: ParsedCall[] = [];
  let at = 0;
  for (; !isToken(spans[at], DEEPSEEK_TOKENS.calls_end); at++) {
    const span = spans[at];
    if (span?.kind === "text" && span.text.trim() === "") continue;
    const end = isToken(span, DEEPSEEK_TOKENS.call) ? findToken(spans, DEEPSEEK_TOKENS.call_end, at) : -1;
    const call = end < 0 ? null : readCall(spans.slice(at + 1, end), form);
    if (call === null) return null;
    calls.push(call);
    at = end;
  }
  return calls.length > 0 && rawText(spans.slice(at + 1)).trim() === "" ? calls : null;
}

export const deepseek =
  (form: DeepseekForm): Parse =>
  (spans, context) => {
    const { reasoning, rest, flawed } = takeReasoning(spans, THINK, context, (text) => text);
    const first = findToken(rest, DEEPSEEK_TOKENS.calls);
    if (first < 0) return { reasoning, content: rawText(rest), calls: [], malformed: flawed || holdsMark(rest) };
    const calls = readCalls(rest.slice(first + 1), form);
    if (calls === null) return { reasoning, content: rawText(rest), calls: [], malformed: true };
    const before = rest.slice(0, first);
    return { reasoning, content: rawText(before), calls, malformed: flawed || holdsMark(before) };
  };
