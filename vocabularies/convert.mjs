// Writes the vocabularies of sources.json in the form their vendors publish: from rank files (byte sequences by rank), or from another
// tokenizer.json that differs in its added tokens. Goldens pin each result by its SHA-256.
//
//     node vocabularies/convert.mjs         # after the parts of install.sh that fetch
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { decompress } from "fzstd";

const here = fileURLToPath(new URL(".", import.meta.url));
const json = (name) => JSON.parse(readFileSync(join(here, name), "utf8"));
const sources = json("sources.json");
const addedTokens = json("added-tokens.json");

const CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
const TAIL = "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
const UPPER = "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]";
const LOWER = "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]";
const SPLITS = {
  llama3: `${CONTRACTIONS}|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|${TAIL}`,
  o200k: `[^\\r\\n\\p{L}\\p{N}]?${UPPER}*${LOWER}+${CONTRACTIONS}?|[^\\r\\n\\p{L}\\p{N}]?${UPPER}+${LOWER}*${CONTRACTIONS}?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|${TAIL}`,
  "qwen3.5": `${CONTRACTIONS}|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|${TAIL}`,
};

/** Rank files as lines `base64 rank`, compressed or not. */
function readRanks(path) {
  const bytes = readFileSync(path);
  return Buffer.from(path.endsWith(".zst") ? decompress(bytes) : bytes).toString("latin1");
}

/** The printable stand-ins that byte-level vocabularies write bytes with. */
function byteSymbols() {
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => {
    const printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    return String.fromCodePoint(printable ? byte : next++);
  });
}

/** Every way to put a token together from two others, in the order of the results and then of the parts. */
function mergesOf(tokens, rankOf) {
  const merges = [];
  for (const token of tokens) {
    const splits = [];
    for (let i = 1; i < token.length; i++) {
      const [left, right] = [token.slice(0, i), token.slice(i)];
      if (rankOf.has(left) && rankOf.has(right)) splits.push([left, right]);
    }
    splits.sort((a, b) => rankOf.get(a[0]) - rankOf.get(b[0]) || rankOf.get(a[1]) - rankOf.get(b[1]));
    merges.push(...splits);
  }
  return merges;
}

/** `{ special, plain }`, each a list that counts on from `first` or a map by id, as `[id, text, special]`. */
function addedOf(name, first) {
  let next = first;
  const list = (texts, special) =>
    Array.isArray(texts)
      ? texts.map((text) => [next++, text, special])
      : Object.entries(texts).map(([id, text]) => [Number(id), text, special]);
  const { special, plain } = addedTokens[name];
  return [...list(special, true), ...list(plain, false)].sort((a, b) => a[0] - b[0]);
}

const hfToken = ([id, content, special]) => ({
  id,
  content,
  single_word: false,
  lstrip: false,
  rstrip: false,
  normalized: false,
  special,
});

function fromRanks({ ranks, split, normalizer, first_added_id, added }) {
  const symbols = byteSymbols();
  const lines = readRanks(join(here, ranks))
    .split("\n")
    .filter((line) => line !== "");
  const byRank = lines
    .map((line) => line.split(" "))
    .map(([text, rank]) => [[...Buffer.from(text, "base64")].map((byte) => symbols[byte]).join(""), Number(rank)])
    .sort((a, b) => a[1] - b[1]);
  const rankOf = new Map(byRank);
  return {
    version: "1.0",
    added_tokens: addedOf(added, first_added_id).map(hfToken),
    normalizer: normalizer === null ? null : { type: normalizer },
    pre_tokenizer: {
      type: "Sequence",
      pretokenizers: [
        { type: "Split", pattern: { Regex: SPLITS[split] }, behavior: "Isolated", invert: false },
        { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: false },
      ],
    },
    post_processor: null,
    decoder: { type: "ByteLevel", add_prefix_space: true, trim_offsets: true, use_regex: true },
    model: {
      type: "BPE",
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: true,
      vocab: Object.fromEntries(byRank),
      merges: mergesOf(rankOf.keys(), rankOf),
    },
  };
}

function fromTokenizer({ tokenizer, drop_added_from, rename_added }) {
  const file = json(tokenizer);
  if (drop_added_from !== undefined) file.added_tokens = file.added_tokens.filter(({ id }) => id < drop_added_from);
  for (const token of file.added_tokens) {
    const text = rename_added?.[token.id];
    if (text === undefined) continue;
    delete file.model.vocab[token.content];
    Object.assign(token, { content: text, special: false, normalized: true });
  }
  return file;
}

for (const [name, source] of Object.entries(sources)) {
  const from = join(here, source.ranks ?? source.tokenizer);
  if (!existsSync(from)) {
    console.error(`SKIPPED the ${name} vocabulary: no ${from}`);
    continue;
  }
  const out = join(here, "converted", name);
  mkdirSync(out, { recursive: true });
  if (source.form === "tiktoken.model") {
    const decoder = addedOf(source.added, 0).map(([id, content, special]) => [
      id,
      { ...hfToken([id, content, special]), id: undefined },
    ]);
    writeFileSync(join(out, "tiktoken.model"), readRanks(from));
    writeFileSync(
      join(out, "tokenizer_config.json"),
      `${JSON.stringify({ added_tokens_decoder: Object.fromEntries(decoder) }, null, 1)}\n`,
    );
  } else {
    writeFileSync(
      join(out, "tokenizer.json"),
      `${JSON.stringify(source.ranks === undefined ? fromTokenizer(source) : fromRanks(source))}\n`,
    );
  }
  console.log(name);
}
