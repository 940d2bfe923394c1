/** The BPE engine as the oracle: pieces are cut where it cuts them, and merged as it merges them. */
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { BpeEncoder } from "../../src/tokenizer/bpe-encoder.js";
import { loadBpeEngine, type TiktokenClass } from "../../src/tokenizer/bpe-engine.js";
import { ByteTable } from "../../src/tokenizer/byte-decoder.js";
import { RankTable } from "../../src/tokenizer/rank-table.js";
import { SPLIT_PATTERNS, type SplitName } from "../../src/tokenizer/split-pattern.js";
import { convertTokenizerJson } from "../../src/tokenizer/tokenizer-data.js";
import { bpeWasm, VOCABULARIES } from "../vocabularies.js";

/** All bytes and all pairs of bytes: how a text is cut shows in its ids. */
function makePairRanks(): string {
  const singles = Array.from({ length: 256 }, (_, byte) => Buffer.of(byte));
  const pairs = Array.from({ length: 0x10000 }, (_, pair) => Buffer.of(pair >> 8, pair & 0xff));
  return `! 0 ${[...singles, ...pairs].map((bytes) => bytes.toString("base64")).join(" ")}`;
}

const PAIR_RANKS = makePairRanks();

const tableOf = (ranks: string): RankTable => new RankTable(new ByteTable({ ranks, added_tokens: [] }));
const PAIR_TABLE = tableOf(PAIR_RANKS);

/** Characters of every class that a pattern asks for, those that Unicode versions disagree about, and all kinds of white space. */
const CHARS =
  "a|Z|é|É|ǅ|ʰ|ª|\u0301|²|Ⅷ|٣|5|1234|§|.|,|!|'|'s|'S|'ſ|'LL|'ve| |  |\t|\n|\r\n|\u0085|\ufeff|\u00a0|\u2028|\u3000|\u0378|\u1c89|\ua7cb|中|国|か|カ|한|😀|👩‍👩|\u{10400}|\u{1D165}|\u{10d4e}|\u{20000}|\u{2ebf0}|\u200d|_|/|//|the|<|>|\0|\u001c|ß|İ|﷽";
const text = fc
  .array(
    fc.tuple(fc.constantFrom(...CHARS.split("|")), fc.oneof({ weight: 12, arbitrary: fc.constant(1) }, fc.nat(300))),
    {
      maxLength: 14,
    },
  )
  .map((parts) => parts.map(([char, times]) => char.repeat(times)).join(""));

describe("ids are the engine's own", () => {
  let engine: TiktokenClass;
  beforeAll(async () => {
    engine = await loadBpeEngine(readFileSync(bpeWasm));
  });

  it.each(Object.keys(SPLIT_PATTERNS) as SplitName[])("where the pre-tokenizer is %s", (split) => {
    const own = new BpeEncoder(PAIR_TABLE, engine, SPLIT_PATTERNS[split]);
    const theirs = new engine(PAIR_RANKS, {}, SPLIT_PATTERNS[split].engine);
    fc.assert(
      fc.property(fc.oneof(text, fc.string({ unit: "binary", maxLength: 20 })), (sample) => {
        expect(Array.from(own.encode(sample))).toEqual(Array.from(theirs.encode_ordinary(sample)));
      }),
      { numRuns: 300 },
    );
    theirs.free();
  });

  it("for short and for long pieces", () => {
    const { ranks, split } = convertTokenizerJson(readFileSync(VOCABULARIES.demo!, "utf8"));
    const own = new BpeEncoder(tableOf(ranks), engine, SPLIT_PATTERNS[split]);
    const theirs = new engine(ranks, {}, SPLIT_PATTERNS[split].engine);
    const part = fc.constantFrom("a", "b", "the", "ing", "command", "E", "s", "re");
    fc.assert(
      fc.property(fc.array(part, { size: "max", maxLength: 400 }), (parts) => {
        expect(Array.from(own.encode(parts.join("")))).toEqual(Array.from(theirs.encode_ordinary(parts.join(""))));
      }),
      { numRuns: 100 },
    );
    theirs.free();
  });

  it("for text with lone surrogates, which are U+FFFD", () => {
    const own = new BpeEncoder(PAIR_TABLE, engine, SPLIT_PATTERNS.qwen);
    expect(own.encode("a\ud83d b\ude00")).toEqual(own.encode("a\ufffd b\ufffd"));
  });
});
