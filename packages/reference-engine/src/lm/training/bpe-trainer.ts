import { CHARACTER_OF_BYTE, toByteCharacters } from "../byte-alphabet.js";
import { type AddedToken, PRE_TOKENIZER_PATTERN } from "../tokenizer.js";

/** Tags of ChatML, Qwen's spelling: control tokens are special, tags that a parser reads in text are not. */
const ADDED: readonly (readonly [content: string, special: boolean])[] = [
  ["<|endoftext|>", true],
  ["<|im_start|>", true],
  ["<|im_end|>", true],
  ["<think>", false],
  ["</think>", false],
  ["<tool_call>", false],
  ["</tool_call>", false],
  ["<tool_response>", false],
  ["</tool_response>", false],
];

/**
 * Trains a byte-level BPE on the texts and returns a Hugging Face `tokenizer.json`.
 * Ids: the 256 bytes in alphabet order, merges in the order learned, then the added tokens; `vocabSize` in all (fewer texts may give fewer merges: RangeError).
 * The most frequent pair wins, ties go to the pair that sorts first, so the result depends on the texts alone. Texts must be ASCII:
 * see PRE_TOKENIZER_PATTERN.
 */
export function trainTokenizer(texts: Iterable<string>, vocabSize: number): string {
  const words = countWords(texts);
  const vocab = new Map<string, number>([...CHARACTER_OF_BYTE].sort().map((character, id) => [character, id]));
  const merges: [string, string][] = [];
  while (vocab.size < vocabSize - ADDED.length) {
    const pair = mostFrequentPair(words);
    if (!pair)
      throw new RangeError(`the texts give only ${vocab.size + ADDED.length} tokens, ${vocabSize} were asked for`);
    merges.push(pair);
    vocab.set(pair[0] + pair[1], vocab.size);
    for (const word of words) word.parts = applyMerge(word.parts, pair);
  }
  const added = ADDED.map(([content, special], index) => ({ id: vocab.size + index, content, special }));
  return tokenizerJson(vocab, merges, added);
}

interface Word {
  parts: string[];
  readonly count: number;
}

/** Pieces between added tokens, with how often they occur. */
function countWords(texts: Iterable<string>): Word[] {
  const counts = new Map<string, number>();
  const added = new RegExp(ADDED.map(([content]) => content.replaceAll("|", "\\|")).join("|"));
  for (const text of texts) {
    for (const plain of text.split(added)) {
      for (const [piece] of plain.matchAll(new RegExp(PRE_TOKENIZER_PATTERN, "gu"))) {
        counts.set(piece, (counts.get(piece) ?? 0) + 1);
      }
    }
  }
  return [...counts].map(([piece, count]) => ({ parts: [...toByteCharacters(piece)], count }));
}

function mostFrequentPair(words: readonly Word[]): [string, string] | undefined {
  const counts = new Map<string, number>();
  for (const { parts, count } of words) {
    for (let i = 0; i + 1 < parts.length; i++) {
      const key = `${parts[i]} ${parts[i + 1]}`;
      counts.set(key, (counts.get(key) ?? 0) + count);
    }
  }
  let best: string | undefined;
  for (const [key, count] of counts) {
    const bestCount = best === undefined ? 0 : counts.get(best)!;
    if (count > bestCount || (count === bestCount && best !== undefined && key < best)) best = key;
  }
  return best === undefined ? undefined : (best.split(" ") as [string, string]);
}

function applyMerge(parts: readonly string[], [left, right]: readonly [string, string]): string[] {
  const out: string[] = [];
  for (let i = 0; i < parts.length; i++) {
    if (parts[i] === left && parts[i + 1] === right) {
      out.push(left + right);
      i++;
    } else out.push(parts[i]!);
  }
  return out;
}

function tokenizerJson(
  vocab: ReadonlyMap<string, number>,
  merges: readonly [string, string][],
  added: readonly AddedToken[],
): string {
  const flags = { single_word: false, lstrip: false, rstrip: false, normalized: false };
  const byteLevel = { type: "ByteLevel", add_prefix_space: false, trim_offsets: false, use_regex: false };
  const split = { type: "Split", pattern: { Regex: PRE_TOKENIZER_PATTERN }, behavior: "Isolated", invert: false };
  const file = {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: added.map(({ id, content, special }) => ({ id, content, ...flags, special })),
    normalizer: null,
    pre_tokenizer: { type: "Sequence", pretokenizers: [split, byteLevel] },
    post_processor: null,
    decoder: byteLevel,
    model: {
      type: "BPE",
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: "",
      end_of_word_suffix: "",
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: false,
      vocab: Object.fromEntries(vocab),
      merges,
    },
  };
  return `${JSON.stringify(file, undefined, 1)}\n`;
}
