/** Kimi K2: a section of calls, each named `functions.NAME:N`, arguments as JSON. */
import { THINK } from "./hermes.js";
import { isJsonObject } from "./json-slices.js";
import type { Parse, ParsedCall } from "./output.js";
import { takeReasoning } from "./reasoning.js";
import { findToken, holdsMark, isToken, rawText, type Span } from "./spans.js";

export const KIMI_TOKENS = {
  section: "<|tool_calls_section_begin|>",
  section_end: "<|tool_calls_section_end|>",
  call: "<|tool_call_begin|>",
  argument: "<|tool_call_argument_begin|>",
  call_end: "<|tool_call_end|>",
};

const CALL_NAME = /^(?:functions\.)?(.+):\d+$/s;

function readCall(spans: readonly Span[]): ParsedCall | null {
  const argument = findToken(spans, KIMI_TOKENS.argument);
  const name = CALL_NAME.exec(rawText(spans.slice(0, Math.max(0, argument))).trim())?.[1];
  const args = rawText(spans.slice(argument + 1)).trim();
  return name !== undefined && isJsonObject(args) ? { name, arguments: args } : null;
}

function readSection(spans: readonly Span[]): ParsedCall[] | null {
  const calls: ParsedCall[] = [];
  let at = 0;
  for (; !isToken(spans[at], KIMI_TOKENS.section_end); at++) {
    const span = spans[at];
    if (span?.kind === "text" && span.text.trim() === "") continue;
    const end = isToken(span, KIMI_TOKENS.call) ? findToken(spans, KIMI_TOKENS.call_end, at) : -1;
    const call = end < 0 ? null : readCall(spans.slice(at + 1, end));
    if (call === null) return null;
    calls.push(call);
    at = end;
  }
  return calls.length > 0 && rawText(spans.slice(at + 1)).trim() === "" ? calls : null;
}

export const kimiK2: Parse = (spans, context) => {
  const { reasoning, rest, flawed } = takeReasoning(spans, THINK, context, (text) => text);
  const first = findToken(rest, KIMI_TOKENS.section);
  if (first < 0) return { reasoning, content: rawText(rest), calls: [], malformed: flawed || holdsMark(rest) };
  const calls = readSection(rest.slice(first + 1));
  if (calls === null) return { reasoning, content: rawText(rest), calls: [], malformed: true };
  const before = rest.slice(0, first);
  return { reasoning, content: rawText(before), calls, malformed: flawed || holdsMark(before) };
};
