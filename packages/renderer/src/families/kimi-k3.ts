/** Kimi K3: nested tags made of tokens, `<|open|>NAME ATTRIBUTES<|sep|> … <|close|>NAME<|sep|>`. */
import { K3_TOKENS } from "../encoders/kimi-k3-tokens.js";
import { tryLosslessJson } from "../template/lossless-json.js";
import type { Parse, ParsedCall, ParsedOutput } from "./output.js";
import { holdsMark, isToken, rawText, type Span } from "./spans.js";

interface Element {
  tag: string;
  attributes: ReadonlyMap<string, string>;
  body: readonly Span[];
}

const unescapeAttribute = (text: string): string => text.replaceAll("&quot;", '"').replaceAll("&amp;", "&");

function readTag(text: string): { tag: string; attributes: Map<string, string> } | null {
  const tag = /^[\w-]+/.exec(text)?.[0];
  if (tag === undefined) return null;
  const attributes = new Map<string, string>();
  const rest = text.slice(tag.length).replace(/ ([\w-]+)="([^"]*)"/g, (_whole, key: string, value: string) => {
    attributes.set(key, unescapeAttribute(value));
    return "";
  });
  return rest === "" ? { tag, attributes } : null;
}

/** The elements that `spans` consists of, side by side; null when anything else stands there. */
function readElements(spans: readonly Span[]): Element[] | null {
  const elements: Element[] = [];
  let at = 0;
  while (at < spans.length) {
    const head = spans[at + 1];
    if (!isToken(spans[at], K3_TOKENS.open) || head?.kind !== "text" || !isToken(spans[at + 2], K3_TOKENS.sep))
      return null;
    const opened = readTag(head.text);
    if (opened === null) return null;
    const close = findClose(spans, at + 3, opened.tag);
    if (close < 0) return null;
    elements.push({ ...opened, body: spans.slice(at + 3, close) });
    at = close + 3;
  }
  return elements;
}

function findClose(spans: readonly Span[], from: number, tag: string): number {
  for (let i = from; i < spans.length; i++) {
    const name = spans[i + 1];
    if (
      isToken(spans[i], K3_TOKENS.close) &&
      name?.kind === "text" &&
      name.text === tag &&
      isToken(spans[i + 2], K3_TOKENS.sep)
    )
      return i;
  }
  return -1;
}

function readCall({ tag, attributes, body }: Element): ParsedCall | null {
  const name = attributes.get("tool");
  const parts = readElements(body);
  if (tag !== "call" || name === undefined || parts === null) return null;
  const [only] = parts;
  if (only?.tag === "json" && parts.length === 1) return { name, arguments: rawText(only.body) };
  const members: string[] = [];
  for (const part of parts) {
    const key = part.attributes.get("key");
    const text = rawText(part.body);
    const json = part.attributes.get("type") === "string" ? JSON.stringify(text) : text;
    if (part.tag !== "argument" || key === undefined || (json !== "null" && tryLosslessJson(json) === undefined))
      return null;
    members.push(`${JSON.stringify(key)}: ${json}`);
  }
  return { name, arguments: `{${members.join(", ")}}` };
}

/** The turn without its last `<|close|>message<|sep|>`, opened as the prompt left it. */
function wholeTurn(spans: readonly Span[], reasoningOpen: boolean): Span[] {
  const opener: Span[] = [
    { kind: "token", text: K3_TOKENS.open },
    { kind: "text", text: reasoningOpen ? "think" : "response" },
    { kind: "token", text: K3_TOKENS.sep },
  ];
  const tail = spans.slice(-3);
  const closed = isToken(tail[0], K3_TOKENS.close) && tail[1]?.text === "message" && isToken(tail[2], K3_TOKENS.sep);
  return [...opener, ...(closed ? spans.slice(0, -3) : spans)];
}

export const kimiK3: Parse = (spans, { reasoning_open }): ParsedOutput => {
  const malformed: ParsedOutput = { reasoning: null, content: rawText(spans), calls: [], malformed: true };
  const elements = readElements(wholeTurn(spans, reasoning_open));
  if (elements === null) return malformed;
  const output: ParsedOutput = { reasoning: null, content: "", calls: [], malformed: false };
  let last = -1;
  for (const { tag, body } of elements) {
    // Each at most once, in this order.
    const place = ["think", "response", "tools"].indexOf(tag);
    if (place <= last) return malformed;
    last = place;
    if (tag === "think") output.reasoning = rawText(body);
    if (tag === "response") output.content = rawText(body);
    if (tag !== "tools") output.malformed ||= holdsMark(body);
    else {
      const calls = readElements(body)?.map(readCall) ?? [null];
      if (calls.includes(null)) return malformed;
      output.calls.push(...(calls as ParsedCall[]));
    }
  }
  return output;
};
