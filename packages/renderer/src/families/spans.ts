/** Sampled ids as the parsers read them: stretches of decoded text and structural tokens, in order. */
import type { ByteTable } from "../tokenizer/byte-decoder.js";
import type { AddedToken } from "../tokenizer/tokenizer-data.js";

/**
 * `token` spans carry the token's text too, so that any run of spans can be put back together as raw text. `spells_mark`: ordinary tokens spell the text of a
 * structural one, which the template's tokenizer would find there.
 */
export type Span = { kind: "text"; text: string; spells_mark?: true } | { kind: "token"; text: string };

/** Where the structure of a family's output is: the tokens that the parser looks for. Those that the vocabulary lacks are looked for in decoded text. */
export interface Structure {
  tokenById: ReadonlyMap<number, string>;
  inText: readonly string[];
  /** Texts of structural tokens that are found in values too, because they are not flagged special. */
  foundInValues: readonly string[];
}

export function structureOf(texts: readonly string[], added: readonly AddedToken[]): Structure {
  const byText = new Map(added.map((token) => [token.text, token]));
  const known = texts.flatMap((text) => byText.get(text) ?? []);
  return {
    tokenById: new Map(known.map(({ id, text }) => [id, text])),
    inText: texts.filter((text) => !byText.has(text)),
    foundInValues: known.filter((token) => !token.special).map((token) => token.text),
  };
}

/** A turn cut into spans. `damaged`: some of its bytes are no text, beyond a character that the end of the turn cut. */
interface Cut {
  spans: Span[];
  damaged: boolean;
}

/** Splits at structural ids first and decodes the stretches between them afterwards, whole, so that no character is cut. */
export function toSpans(ids: readonly number[], structure: Structure, bytes: ByteTable): Cut {
  const spans: Span[] = [];
  let damaged = false;
  let pending: number[] = [];
  const flush = (atEnd: boolean): void => {
    if (pending.length === 0) return;
    const text = bytes.decode(pending);
    damaged ||= text.includes("\ufffd") && !isText(bytes.decodeBytes(pending), atEnd);
    spans.push(...splitText(text, structure));
    pending = [];
  };
  for (const id of ids) {
    const token = structure.tokenById.get(id);
    if (token === undefined) pending.push(id);
    else {
      flush(false);
      spans.push({ kind: "token", text: token });
    }
  }
  flush(true);
  return { spans, damaged };
}

/** True when `bytes` are UTF-8; with `cut`, the last character may be unfinished. */
function isText(bytes: Uint8Array, cut: boolean): boolean {
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: cut });
    return true;
  } catch {
    return false;
  }
}

function splitText(text: string, { inText: marks, foundInValues }: Structure): Span[] {
  const textSpan = (part: string): Span => {
    const spells = foundInValues.some((mark) => part.includes(mark));
    return spells ? { kind: "text", text: part, spells_mark: true } : { kind: "text", text: part };
  };
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
    if (at > from) spans.push(textSpan(text.slice(from, at)));
    if (mark !== "") spans.push({ kind: "token", text: mark });
    from = at + mark.length;
  }
  return spans;
}

export const rawText = (spans: readonly Span[]): string => spans.map((span) => span.text).join("");

/** True when the spans are not plain text: a mark of the family's form stands where it has no place. */
export const holdsMark = (spans: readonly Span[]): boolean =>
  spans.some((span) => span.kind === "token" || span.spells_mark === true);

export const isToken = (span: Span | undefined, text: string): boolean => span?.kind === "token" && span.text === text;

/** Place of the first structural token `text` at or after `from`; -1 when there is none. */
export function findToken(spans: readonly Span[], text: string, from = 0): number {
  for (let i = from; i < spans.length; i++) if (isToken(spans[i], text)) return i;
  return -1;
}
