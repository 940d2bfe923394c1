/** gpt-oss: a turn is one or more messages on channels; calls go to a recipient. */
import { isJsonObject } from "./json-slices.js";
import type { Parse, ParsedCall, ParsedOutput } from "./output.js";
import { findToken, holdsMark, isToken, rawText, type Span } from "./spans.js";

export const HARMONY_TOKENS = {
  start: "<|start|>",
  end: "<|end|>",
  message: "<|message|>",
  channel: "<|channel|>",
  constrain: "<|constrain|>",
  call: "<|call|>",
  return: "<|return|>",
};

interface HarmonyMessage {
  channel: string;
  recipient: string | null;
  body: readonly Span[];
  /** The header or the end is none that the vendor's encoder writes there. */
  flawed: boolean;
}

const RECIPIENT = / to=(\S+)/;

/** One header: `assistant`, recipient before or after the channel. The first header has no `<|start|>assistant`: the prompt gave it. */
function readHeader(spans: readonly Span[], author: string): Omit<HarmonyMessage, "body"> | null {
  const at = findToken(spans, HARMONY_TOKENS.channel);
  const parts = [spans.slice(0, at), spans.slice(at + 1).filter((span) => !isToken(span, HARMONY_TOKENS.constrain))];
  if (at < 0 || parts.some(holdsMark)) return null;
  const [before, after] = parts.map(rawText) as [string, string];
  const recipient = RECIPIENT.exec(before)?.[1] ?? RECIPIENT.exec(after)?.[1] ?? null;
  const channel = /^\w+/.exec(after)?.[0];
  if (channel === undefined) return null;
  return { channel, recipient, flawed: before.replace(RECIPIENT, "").trim() !== author };
}

function readMessages(spans: readonly Span[]): HarmonyMessage[] | null {
  const messages: HarmonyMessage[] = [];
  let at = 0;
  while (at < spans.length) {
    const started = isToken(spans[at], HARMONY_TOKENS.start);
    if (started) at++;
    const bodyAt = spans.findIndex((span, i) => i >= at && isToken(span, HARMONY_TOKENS.message));
    const header = bodyAt < 0 ? null : readHeader(spans.slice(at, bodyAt), started ? "assistant" : "");
    if (header === null) return null;
    let end = bodyAt + 1;
    while (end < spans.length && !isEnd(spans[end]!)) end++;
    const body = spans.slice(bodyAt + 1, end);
    // The turn is over behind a call and behind an answer: only `<|end|>` has something behind it.
    const endedBefore = end < spans.length && !isToken(spans[end], HARMONY_TOKENS.end);
    const misplaced = started !== messages.length > 0;
    messages.push({ ...header, body, flawed: header.flawed || endedBefore || misplaced || holdsMark(body) });
    at = end + 1;
  }
  return messages;
}

const isEnd = (span: Span): boolean =>
  span.kind === "token" && [HARMONY_TOKENS.end, HARMONY_TOKENS.call, HARMONY_TOKENS.return].includes(span.text);

/** Channels of a turn as the vendor's encoder writes it: reasoning, then the answer, or a call with words before it. A turn that was cut may lack the end. */
const ORDER = /^(?:analysis )?(?:final |(?:commentary )?call )$/;
const ORDER_CUT = /^(?:analysis )?(?:final |(?:commentary )?(?:call )?)$/;

export const harmony: Parse = (spans, { ended }): ParsedOutput => {
  const malformed: ParsedOutput = { reasoning: null, content: rawText(spans), calls: [], malformed: true };
  const messages = readMessages(spans);
  if (messages === null) return malformed;
  const reasoning: string[] = [];
  const content: string[] = [];
  const calls: ParsedCall[] = [];
  for (const { channel, recipient, body } of messages) {
    const text = rawText(body);
    if (recipient !== null) {
      if (!recipient.startsWith("functions.") || !isJsonObject(text)) return malformed;
      calls.push({ name: recipient.slice("functions.".length), arguments: text });
    } else if (channel === "analysis") reasoning.push(text);
    else if (channel === "final" || channel === "commentary") content.push(text);
    else return malformed;
  }
  const order = messages.map(({ channel, recipient }) => `${recipient === null ? channel : "call"} `).join("");
  return {
    reasoning: reasoning.length > 0 ? reasoning.join("\n") : null,
    content: content.join("\n"),
    calls,
    malformed: messages.some(({ flawed }) => flawed) || !(ended ? ORDER : ORDER_CUT).test(order),
  };
};
