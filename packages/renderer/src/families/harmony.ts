/** gpt-oss: a turn is one or more messages on channels; calls go to a recipient. */
import { isJsonObject } from "./json-slices.js";
import type { Parse, ParsedOutput } from "./output.js";
import { isToken, rawText, type Span } from "./spans.js";

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
  body: string;
}

const RECIPIENT = / to=(\S+)/;

/** One header: `assistant`, recipient before or after the channel. The first header has no `<|start|>assistant`: the prompt gave it. */
function readHeader(spans: readonly Span[]): { channel: string; recipient: string | null } | null {
  const text = rawText(spans.filter((span) => !isToken(span, HARMONY_TOKENS.constrain)));
  const at = text.indexOf(HARMONY_TOKENS.channel);
  if (at < 0) return null;
  const after = text.slice(at + HARMONY_TOKENS.channel.length);
  const recipient = RECIPIENT.exec(text.slice(0, at))?.[1] ?? RECIPIENT.exec(after)?.[1] ?? null;
  const channel = /^\w+/.exec(after)?.[0];
  return channel === undefined ? null : { channel, recipient };
}

function readMessages(spans: readonly Span[]): HarmonyMessage[] | null {
  const messages: HarmonyMessage[] = [];
  let at = 0;
  while (at < spans.length) {
    if (isToken(spans[at], HARMONY_TOKENS.start)) at++;
    const bodyAt = spans.findIndex((span, i) => i >= at && isToken(span, HARMONY_TOKENS.message));
    const header = bodyAt < 0 ? null : readHeader(spans.slice(at, bodyAt));
    if (header === null) return null;
    let end = bodyAt + 1;
    while (end < spans.length && !isEnd(spans[end]!)) end++;
    messages.push({ ...header, body: rawText(spans.slice(bodyAt + 1, end)) });
    at = end + 1;
  }
  return messages;
}

const isEnd = (span: Span): boolean =>
  span.kind === "token" && [HARMONY_TOKENS.end, HARMONY_TOKENS.call, HARMONY_TOKENS.return].includes(span.text);

export const harmony: Parse = (spans): ParsedOutput => {
  const malformed: ParsedOutput = { reasoning: null, content: rawText(spans), calls: [], malformed: true };
  const messages = readMessages(spans);
  if (messages === null) return malformed;
  const reasoning: string[] = [];
  const content: string[] = [];
  const output: ParsedOutput = { reasoning: null, content: "", calls: [], malformed: false };
  for (const { channel, recipient, body } of messages) {
    if (recipient !== null) {
      if (!recipient.startsWith("functions.") || !isJsonObject(body)) return malformed;
      output.calls.push({ name: recipient.slice("functions.".length), arguments: body });
    } else if (channel === "analysis") reasoning.push(body);
    else if (channel === "final" || channel === "commentary") content.push(body);
    else return malformed;
  }
  if (reasoning.length > 0) output.reasoning = reasoning.join("\n");
  output.content = content.join("\n");
  return output;
};
