/** Hermes form: JSON calls between call marks. Qwen 2.5, Qwen 3 and the demo's own policy. */
import { pythonStrip } from "../template/python-strip.js";
import { readJsonCall } from "./json-slices.js";
import type { Parse, ParseContext, ParsedCall, ParsedOutput } from "./output.js";
import { takeReasoning } from "./reasoning.js";
import { findToken, holdsMark, isToken, rawText, type Span } from "./spans.js";

export const THINK = { open: "<think>", close: "</think>" };
export const TOOL_CALL = { open: "<tool_call>", close: "</tool_call>" };

/** How the template prints content, inverted. */
export interface ContentForm {
  reasoning?: (text: string) => string;
  /** Line breaks between the reasoning block and the content belong to the template. */
  lead: "cut_breaks" | "keep" | "trim";
  /** What the template prints between content and the first call. */
  before_call: string;
}

/** Text before the first call, without what the template itself puts there. */
function contentBefore(
  spans: readonly Span[],
  form: ContentForm,
  afterReasoning: boolean,
  callsFollow: boolean,
): string {
  let text = rawText(spans);
  if (callsFollow && form.before_call !== "" && text.endsWith(form.before_call))
    text = text.slice(0, -form.before_call.length);
  if (form.lead === "trim") return pythonStrip(text);
  return afterReasoning && form.lead === "cut_breaks" ? text.replace(/^\n+/, "") : text;
}

/** Cuts the spans after the content into call bodies. Null when anything but white space stands between calls, or a call does not close. */
function callBodies(spans: readonly Span[], marks: { open: string; close: string }): string[] | null {
  const bodies: string[] = [];
  let at = 0;
  while (at < spans.length) {
    const span = spans[at]!;
    if (span.kind === "text" && span.text.trim() === "") at++;
    else if (isToken(span, marks.open)) {
      const close = findToken(spans, marks.close, at + 1);
      if (close < 0) return null;
      bodies.push(rawText(spans.slice(at + 1, close)));
      at = close + 1;
    } else return null;
  }
  return bodies;
}

/** A turn of the form: reasoning block, content, marked calls whose bodies `read` understands. */
export function parseMarkedCalls(
  spans: readonly Span[],
  context: ParseContext,
  form: ContentForm,
  marks: { think: { open: string; close: string } | null; call: { open: string; close: string } },
  read: (body: string) => ParsedCall[] | null,
): ParsedOutput {
  const { reasoning, rest, flawed } =
    marks.think === null
      ? { reasoning: null, rest: spans, flawed: false }
      : takeReasoning(spans, marks.think, context, form.reasoning);
  const first = findToken(rest, marks.call.open);
  const after = reasoning !== null;
  if (first < 0) {
    const malformed = flawed || holdsMark(rest);
    return { reasoning, content: contentBefore(rest, form, after, false), calls: [], malformed };
  }
  const bodies = callBodies(rest.slice(first), marks.call);
  const calls = bodies?.map(read) ?? [null];
  if (calls.includes(null)) {
    return {
      reasoning,
      content: contentBefore(rest, { ...form, before_call: "" }, after, false),
      calls: [],
      malformed: true,
    };
  }
  const before = rest.slice(0, first);
  return {
    reasoning,
    content: contentBefore(before, form, after, true),
    calls: (calls as ParsedCall[][]).flat(),
    malformed: flawed || holdsMark(before),
  };
}

const readHermes = (body: string): ParsedCall[] | null => {
  const call = readJsonCall(body, ["arguments"]);
  return call === null ? null : [call];
};

/** Parser of the Hermes form, for a template that prints content as `form` says. */
export const hermes =
  (form: ContentForm, think: typeof THINK | null = THINK): Parse =>
  (spans, context) =>
    parseMarkedCalls(spans, context, form, { think, call: TOOL_CALL }, readHermes);
