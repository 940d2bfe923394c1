import { z } from "zod";
import { BYTE_OF_CHARACTER, CHARACTER_OF_BYTE, toByteCharacters } from "./byte-alphabet.js";
import { invalidModel, parseJson } from "./config.js";

/**
 * The pre-tokenizer: Qwen's splitting rule with ASCII letters, digits and blanks, so that it means the same to every regex engine and Unicode version.
 * The vocabulary has no merge across a byte above 0x7f, therefore llama.cpp's `qwen2` rule gives the same ids.
 */
export const PRE_TOKENIZER_PATTERN =
  "'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])|[^\\r\\nA-Za-z0-9]?[A-Za-z]+|[0-9]| ?[^ \\t\\n\\x0b\\f\\rA-Za-z0-9]+[\\r\\n]*" +
  "|[ \\t\\n\\x0b\\f\\r]*[\\r\\n]+|[ \\t\\n\\x0b\\f\\r]+(?![^ \\t\\n\\x0b\\f\\r])|[ \\t\\n\\x0b\\f\\r]+";

const tokenizerSchema = z.looseObject({
  normalizer: z.null(),
  added_tokens: z
    .array(z.looseObject({ id: z.int().min(0), content: z.string().min(1), special: z.boolean() }))
    .max(256),
  pre_tokenizer: z.looseObject({
    type: z.literal("Sequence"),
    pretokenizers: z.tuple([
      z.looseObject({ type: z.literal("Split"), pattern: z.object({ Regex: z.literal(PRE_TOKENIZER_PATTERN) }) }),
      z.looseObject({ type: z.literal("ByteLevel"), add_prefix_space: z.literal(false), use_regex: z.literal(false) }),
    ]),
  }),
  model: z.looseObject({
    type: z.literal("BPE"),
    vocab: z.record(z.string(), z.int().min(0)),
    merges: z.array(z.tuple([z.string(), z.string()])).max(8192),
  }),
});

/** What a token id means. */
interface Token {
  readonly bytes: Uint8Array;
  /** Left out when text is shown with special tokens skipped. */
  readonly special: boolean;
}

export interface AddedToken {
  readonly id: number;
  readonly content: string;
  /** Control token (`<|im_end|>`), as against a tag that stays visible in text (`<tool_call>`). */
  readonly special: boolean;
}

/** A byte-level BPE tokenizer: any text has ids, and the bytes of the ids are the text. */
export interface Tokenizer {
  /** Number of ids, added tokens included; every id below it is a token. */
  readonly vocabSize: number;
  readonly addedTokens: readonly AddedToken[];
  /** Content of each added token (control tokens and tags alike) → its id. */
  readonly specialIds: ReadonlyMap<string, number>;
  /** Ids of the text. `special: true` reads added tokens in the text as tokens (how a rendered prompt is read); `false` reads them as plain text. */
  encode(text: string, options: { special: boolean }): Int32Array;
  /** The bytes of one token; an added token gives its text. Throws RangeError for an id outside the vocabulary. */
  tokenBytes(id: number): Uint8Array;
  /** True for control tokens. */
  isSpecial(id: number): boolean;
  /** The bytes of all tokens, in order, added tokens included. */
  decodeBytes(ids: ArrayLike<number>): Uint8Array;
  /** UTF-8 text of the tokens; incomplete sequences become U+FFFD. */
  decode(ids: ArrayLike<number>, options?: { skipSpecial?: boolean }): string;
}

/** Reads a Hugging Face `tokenizer.json` of the one shape that `encode` reproduces exactly; anything else is `bundle_invalid`. */
export function parseTokenizer(text: string, file: string): Tokenizer {
  const parsed = tokenizerSchema.safeParse(parseJson(text, file));
  if (!parsed.success) throw invalidModel(file, z.prettifyError(parsed.error).replaceAll("\n", " "));
  const { model, added_tokens: addedTokens } = parsed.data;
  const vocab = new Map(Object.entries(model.vocab));
  const tokens: Token[] = [];
  for (const [characters, id] of vocab) tokens[id] = { bytes: bytesOfCharacters(characters, file), special: false };
  for (const { id, content, special } of addedTokens)
    tokens[id] = { bytes: new TextEncoder().encode(content), special };
  for (let id = 0; id < tokens.length; id++) if (!tokens[id]) throw invalidModel(file, `id ${id} has no token`);
  for (const character of CHARACTER_OF_BYTE) {
    if (!vocab.has(character))
      throw invalidModel(file, `no token for the single byte ${BYTE_OF_CHARACTER.get(character)}`);
  }
  const ranks = new Map(model.merges.map(([left, right], rank) => [`${left} ${right}`, rank]));
  return createTokenizer(tokens, vocab, ranks, addedTokens);
}

function createTokenizer(
  tokens: readonly Token[],
  vocab: ReadonlyMap<string, number>,
  ranks: ReadonlyMap<string, number>,
  addedTokens: readonly AddedToken[],
): Tokenizer {
  const specialIds = new Map(addedTokens.map(({ content, id }) => [content, id]));
  const longestFirst = [...specialIds.keys()].sort((a, b) => b.length - a.length);
  const addedPattern = new RegExp(longestFirst.map(escapeRegex).join("|"), "g");
  const encodePlain = (text: string, out: number[]) => {
    for (const [piece] of text.matchAll(new RegExp(PRE_TOKENIZER_PATTERN, "gu"))) {
      for (const part of mergePiece(toByteCharacters(piece), ranks)) out.push(vocab.get(part)!);
    }
  };
  const tokenOf = (id: number): Token => {
    const token = tokens[id];
    if (!token) throw new RangeError(`token id ${id} is outside the vocabulary of ${tokens.length}`);
    return token;
  };
  const decodeBytes = (ids: ArrayLike<number>) => concatBytes(Array.from(ids, (id) => tokenOf(id).bytes));
  return {
    vocabSize: tokens.length,
    addedTokens,
    specialIds,
    encode(text, { special }) {
      const out: number[] = [];
      let from = 0;
      if (special && longestFirst.length > 0) {
        for (const match of text.matchAll(addedPattern)) {
          encodePlain(text.slice(from, match.index), out);
          out.push(specialIds.get(match[0])!);
          from = match.index + match[0].length;
        }
      }
      encodePlain(text.slice(from), out);
      return Int32Array.from(out);
    },
    tokenBytes: (id) => tokenOf(id).bytes,
    isSpecial: (id) => tokenOf(id).special,
    decodeBytes,
    decode(ids, { skipSpecial = false } = {}) {
      const kept = skipSpecial ? Array.from(ids).filter((id) => !tokenOf(id).special) : ids;
      return new TextDecoder("utf-8", { ignoreBOM: true }).decode(decodeBytes(kept));
    },
  };
}

/**
 * Applies merges to one piece, lowest rank first. A merged token takes part only in merges learned later, so all places of the lowest pair can be merged in
 * one sweep, left to right; the number of sweeps is bounded by the number of merges, not by the length of the piece.
 */
function mergePiece(characters: string, ranks: ReadonlyMap<string, number>): string[] {
  let parts = [...characters];
  for (;;) {
    let best = Number.POSITIVE_INFINITY;
    for (let i = 0; i + 1 < parts.length; i++) {
      best = Math.min(best, ranks.get(`${parts[i]} ${parts[i + 1]}`) ?? Number.POSITIVE_INFINITY);
    }
    if (best === Number.POSITIVE_INFINITY) return parts;
    const merged: string[] = [];
    for (let i = 0; i < parts.length; i++) {
      const next = parts[i + 1];
      if (next !== undefined && ranks.get(`${parts[i]} ${next}`) === best) {
        merged.push(parts[i]! + next);
        i++;
      } else merged.push(parts[i]!);
    }
    parts = merged;
  }
}

function bytesOfCharacters(characters: string, file: string): Uint8Array {
  return Uint8Array.from([...characters], (character) => {
    const byte = BYTE_OF_CHARACTER.get(character);
    if (byte === undefined) throw invalidModel(file, `token ${JSON.stringify(characters)} is not in the byte alphabet`);
    return byte;
  });
}

function concatBytes(parts: readonly Uint8Array[]): Uint8Array {
  const out = new Uint8Array(parts.reduce((sum, part) => sum + part.byteLength, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.byteLength;
  }
  return out;
}

const escapeRegex = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
