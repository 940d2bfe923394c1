/** Sampled ids as the parsers read them: stretches of decoded text and structural tokens, in order. */
import type { ByteTable } from "../tokenizer/byte-decoder.js";

/** `token` spans carry the token's text too, so that any run of spans can be put back together as raw text. */
export type Span = { kind: "text"; text: string } | { kind: "token"; text: string };

/** Where the structure of a family's output is: the tokens that the parser looks for. Those that the vocabulary lacks are looked for in decoded text. */
export interface Structure {
  tokenById: ReadonlyMap<number, string>;
  inText: readonly string[];
}

export function structureOf(texts: readonly string[], idByText: ReadonlyMap<string, number>): Structure {
  const known = texts.filter((text) => idByText.has(text));
  return {
    tokenById: new Map(known.map((text) => [idByText.get(text)!, text])),
    inText: texts.filter((text) => !idByText.has(text)),
  };
}

/** Splits at structural ids first and decodes the stretches between them afterwards, whole, so that no character is cut. */
export function toSpans(ids: Iterable<number>, structure: Structure, bytes: ByteTable): Span[] {
  const spans: Span[] = [];
  let pending: number[] = [];
  const flush = (): void => {
    if (pending.length > 0) spans.push(...splitText(bytes.decode(pending), structure.inText));
    pending = [];
  };
  for (const id of ids) {
    const token = structure.tokenById.get(id);
    if (token === undefined) pending.push(id);
    else {
      flush();
      spans.push({ kind: "token", text: token });
    }
  }
  flush();
  return spans;
}

function splitText(text: string, marks: readonly string[]): Span[] {
  const spans: Span[] = [];
  let from = 0;
  while (from < text.length) {
    let at = text.length;
    let mark = "";
    for (const candidate of marks) {
      const found = text.indexOf(candidate, from);
      if (found >= 0 && (found < at || (found === at && candidate.length > mark.length))) {
        at = found;
        mark = candidate;
      }
    }
    if (at > from) spans.push({ kind: "text", text: text.slice(from, at) });
    if (mark !== "") spans.push({ kind: "token", text: mark });
    from = at + mark.length;
  }
  return spans;
}

export const rawText = (spans: readonly Span[]): string => spans.map((span) => span.text).join("");

export const isToken = (span: Span | undefined, text: string): boolean => span?.kind === "token" && span.text === text;

/** Place of the first structural token `text` at or after `from`; -1 when there is none. */
export function findToken(spans: readonly Span[], text: string, from = 0): number {
  for (let i = from; i < spans.length; i++) if (isToken(spans[i], text)) return i;
  return -1;
}
