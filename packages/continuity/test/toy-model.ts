/** A toy chat template and tokenizer, small enough to be read in a transcript. Ids are given out in the order of first use. */
import type { Message } from "@tito/format";
import { flatText } from "../src/index.js";

/**
 * `keep`: old turns print as they are. `strip`: reasoning before the last user message is not printed, as many templates do. `ids`: ids of
 * calls are printed. `respell`: arguments of old turns are printed as Python writes JSON.
 */
export type Template = "keep" | "strip" | "ids" | "respell";

export class Vocabulary {
  private readonly ids = new Map<string, number>();
  private readonly texts: string[] = [];

  encode(tokens: readonly string[]): Int32Array {
    return Int32Array.from(tokens, (token) => {
      const known = this.ids.get(token);
      if (known !== undefined) return known;
      this.ids.set(token, this.texts.length);
      return this.texts.push(token) - 1;
    });
  }

  decode(id: number | null): string {
    return id === null ? "end" : JSON.stringify(this.texts[id]);
  }
}

export interface PromptParts {
  messages: readonly Message[];
  tools: string;
  contract: string;
  template: Template;
}

/** The tokens of a prompt: tools first (unless their name begins with `~`: then the template does not print them), then every message, then the header of the reply. */
export function promptTokens(parts: PromptParts): string[] {
  const lastUser = parts.messages.findLastIndex((message) => message.role === "user");
  const printed = parts.messages.flatMap((message, i) => {
    const strip = parts.template === "strip" && i < lastUser;
    return [`<${message.role}>`, ...bodyTokens(message, parts.template, strip), "<end>"];
  });
  return [
    `<${parts.contract}>`,
    ...(/^\w/.test(parts.tools) ? [`<tools ${parts.tools}>`] : []),
    ...printed,
    "<assistant>",
  ];
}

/** The tokens that a policy samples for a reply; `|` in the reply's source splits a word otherwise than the tokenizer would. */
export function sampledTokens(reply: Message, template: Template = "keep"): string[] {
  return [...bodyTokens(reply, template === "ids" ? template : "keep", false), "<end>"];
}

function bodyTokens(message: Message, template: Template, stripReasoning: boolean): string[] {
  const out: string[] = template === "ids" && message.tool_call_id !== undefined ? [message.tool_call_id] : [];
  if (message.reasoning !== undefined && !stripReasoning) out.push("<think>", ...words(message.reasoning), "</think>");
  out.push(...words(flatText(message.content)));
  for (const call of message.tool_calls ?? []) {
    const args = template === "respell" ? call.arguments.replace(/([:,])(?=\S)/g, "$1 ") : call.arguments;
    out.push("<call>", ...(template === "ids" ? [call.id] : []), call.name, ...words(args), "</call>");
  }
  return out;
}

function words(text: string): string[] {
  return text.match(/\s+|\w+|[^\w\s]/g) ?? [];
}

/** `<think>reasoning</think>text @call ID NAME ARGUMENTS`, or `null` for a content that is null. */
export function parseAssistant(source: string): Message {
  const message: Message = { role: "assistant", content: "" };
  let rest = source;
  const think = /^<think>(.*?)<\/think>/s.exec(rest);
  if (think !== null) {
    message.reasoning = think[1]!;
    rest = rest.slice(think[0].length);
  }
  const [text = "", ...calls] = rest.split("@call ");
  const content = calls.length > 0 ? text.trimEnd() : text;
  message.content = content === "null" ? null : content;
  if (calls.length === 0) return message;
  message.tool_calls = calls.map((call) => {
    const [, id = "", name = "", args = ""] = /^(\S+) (\S+) ?(.*?) *$/s.exec(call) ?? [];
    return { id, name, arguments: args };
  });
  return message;
}
