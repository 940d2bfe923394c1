/** A `tokenizer.json` reduced to what encoding and decoding need, and the checks that make the reduction exact. */
import { TitoError } from "@tito/format";
import { type SplitName, splitNameOf } from "./split-pattern.js";

/** A token that is matched as text before BPE. `special` tokens only ever come from the template. */
export interface AddedToken {
  id: number;
  text: string;
  special: boolean;
  /** Matched in a second pass, over what the first left (tokenizers.json `normalized`). */
  second_pass: boolean;
}

/** What `ranks.txt` and `tokenizer.json` of a bundle hold. */
export interface TokenizerData {
  split: SplitName;
  normalizer: "NFC" | null;
  added_tokens: AddedToken[];
  /** Lines `! OFFSET base64 base64 …`: the bytes of consecutive ids from OFFSET. Rank = id. */
  ranks: string;
}

interface HfAddedToken {
  id: number;
  content: string;
  special: boolean;
  lstrip: boolean;
  rstrip: boolean;
  single_word: boolean;
  normalized: boolean;
}

interface HfTokenizer {
  added_tokens: HfAddedToken[];
  normalizer?: { type: string; normalizers?: { type: string }[] } | null;
  pre_tokenizer: unknown;
  model: {
    type: string;
    vocab: Record<string, number>;
    merges: (string | [string, string])[];
    byte_fallback?: boolean;
    ignore_merges?: boolean;
    unk_token?: string | null;
    continuing_subword_prefix?: string | null;
    end_of_word_suffix?: string | null;
  };
}

const refuse = (what: string): never => {
  throw new TitoError("unsupported", `tokenizer.json cannot be converted without changing ids: ${what}`, {
    hint: "Use --renderer engine for this model: the engine then tokenizes.",
  });
};

/** The printable stand-ins that byte-level BPE vocabularies write bytes with, inverted. */
function byteOfSymbol(): Map<string, number> {
  const symbols = new Map<string, number>();
  let next = 256;
  for (let byte = 0; byte < 256; byte++) {
    const printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    symbols.set(String.fromCodePoint(printable ? byte : next++), byte);
  }
  return symbols;
}

/** Byte sequences by id, as one line per run of consecutive ids. */
export function writeRanks(bytesById: Map<number, Buffer>): string {
  const ids = [...bytesById.keys()].sort((a, b) => a - b);
  const lines: string[] = [];
  let previous = -2;
  for (const id of ids) {
    if (id !== previous + 1) lines.push(`! ${id}`);
    lines[lines.length - 1] += ` ${bytesById.get(id)!.toString("base64")}`;
    previous = id;
  }
  return lines.join("\n");
}

/**
 * BPE by rank merges the pair with the lowest id first: that equals the merge list only when the list is in the order of its results.
 * The engine takes a whole piece that is a token without merging, as `ignore_merges` does; without that, a token that no merge makes would differ.
 */
function checkMerges(model: HfTokenizer["model"]): void {
  let last = -1;
  const reachable = new Set<number>();
  for (const merge of model.merges) {
    const [left, right] = typeof merge === "string" ? (merge.split(" ") as [string, string]) : merge;
    const id = model.vocab[left + right];
    if (id === undefined || id < last) refuse(`merge "${left} ${right}" is not in the order of its token id`);
    last = id!;
    reachable.add(last);
  }
  if (model.ignore_merges === true) return;
  const unreachable = Object.entries(model.vocab).filter(([text, id]) => [...text].length > 1 && !reachable.has(id));
  const named = new Set(unreachable.map(([text]) => text));
  for (const text of named)
    if (!/^<.*>$/u.test(text)) refuse(`token ${JSON.stringify(text)} cannot be reached by merges`);
}

function normalizerOf(normalizer: HfTokenizer["normalizer"]): "NFC" | null {
  const steps = normalizer === null || normalizer === undefined ? [] : (normalizer.normalizers ?? [normalizer]);
  const types = steps.map((step) => step.type);
  if (types.length === 0) return null;
  return types.length === 1 && types[0] === "NFC" ? "NFC" : refuse(`normalizer ${types.join(", ")}`);
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The file with everything that the conversion reads where it should be. */
function readTokenizerJson(text: string): HfTokenizer {
  let hf: unknown;
  try {
    hf = JSON.parse(text);
  } catch (cause) {
    throw new TitoError("bundle_invalid", "tokenizer.json is not JSON", { cause });
  }
  const model = isRecord(hf) && isRecord(hf.model) ? hf.model : {};
  if (model.type !== "BPE" || !Array.isArray(model.merges))
    refuse(`model ${typeof model.type === "string" ? model.type : "missing"}, not BPE`);
  const added = isRecord(hf) ? (hf.added_tokens ?? []) : [];
  const sound =
    isRecord(model.vocab) &&
    Object.values(model.vocab).every(Number.isSafeInteger) &&
    (model.merges as unknown[]).every(isMerge) &&
    Array.isArray(added) &&
    added.every((token) => isRecord(token) && Number.isSafeInteger(token.id) && typeof token.content === "string");
  if (!sound)
    throw new TitoError("bundle_invalid", "tokenizer.json has no vocabulary, merges or added tokens as it should");
  return { ...(hf as HfTokenizer), added_tokens: added as HfTokenizer["added_tokens"] };
}

const isMerge = (merge: unknown): boolean =>
  typeof merge === "string" ||
  (Array.isArray(merge) && merge.length === 2 && merge.every((part) => typeof part === "string"));

/**
 * Converts a Hugging Face `tokenizer.json` (its text) with a byte-level BPE model.
 * @throws TitoError `unsupported` when the conversion would not be exact, `bundle_invalid` when the file is not a tokenizer.
 */
export function convertTokenizerJson(text: string): TokenizerData {
  const hf = readTokenizerJson(text);
  if (hf.model.byte_fallback === true || hf.model.continuing_subword_prefix || hf.model.end_of_word_suffix) {
    return refuse("byte fallback or subword marks");
  }
  const normalizer = normalizerOf(hf.normalizer);
  for (const token of hf.added_tokens) {
    if (token.lstrip || token.rstrip || token.single_word)
      return refuse(`added token ${token.content} strips its surroundings`);
    if (token.normalized && normalizer !== null) return refuse(`added token ${token.content} is normalized`);
  }
  checkMerges(hf.model);
  const added = new Set(hf.added_tokens.map((token) => token.id));
  const symbols = byteOfSymbol();
  const bytesById = new Map<number, Buffer>();
  for (const [text, id] of Object.entries(hf.model.vocab)) {
    if (added.has(id)) continue;
    const bytes = [...text].map(
      (symbol) => symbols.get(symbol) ?? refuse(`token ${JSON.stringify(text)} is not byte-level`),
    );
    bytesById.set(id, Buffer.from(bytes as number[]));
  }
  const singles = new Set([...bytesById.values()].filter((bytes) => bytes.length === 1).map((bytes) => bytes[0]));
  if (singles.size !== 256) return refuse(`${256 - singles.size} single bytes have no token`);
  return {
    split: splitNameOf(hf.pre_tokenizer),
    normalizer,
    added_tokens: hf.added_tokens.map(({ id, content, special, normalized }) => ({
      id,
      text: content,
      special,
      second_pass: normalized,
    })),
    ranks: writeRanks(bytesById),
  };
}
