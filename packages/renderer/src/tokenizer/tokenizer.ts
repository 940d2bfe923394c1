/**
 * Text to ids and ids to bytes, equal to the reference tokenizer of the vocabulary.
 * The text between added tokens is cut and merged by the BPE engine; long unbroken runs by our own near-linear BPE on the same ranks.
 */
import { AddedTokens } from "./added-tokens.js";
import type { BpeEngine, TiktokenClass } from "./bpe-engine.js";
import { ByteTable, StreamingText } from "./byte-decoder.js";
import { encodeLongPiece, RankTable } from "./long-piece.js";
import { longRegions } from "./long-runs.js";
import { normalizeNfc } from "./nfc.js";
import { PieceCache } from "./piece-cache.js";
import { PieceSplitter } from "./piece-splitter.js";
import { RecentPrompts } from "./recent-prompts.js";
import { SPLIT_PATTERNS } from "./split-pattern.js";
import type { AddedToken, TokenizerData } from "./tokenizer-data.js";
import { ValueGuard } from "./value-guard.js";

const CACHE_UNITS_MAX = 32 * 1024 * 1024;

/** A chunk of rendered text, cut at its added tokens: what comes before the first, the ids from the first to the last, what comes after the last. */
interface ChunkEncoding {
  head: string;
  ids: Int32Array;
  /** Null when the chunk holds no added token: then `head` is all of it. */
  tail: string | null;
  escaped: boolean;
}

/** Ids of rendered text, and whether text of special tokens in values was encoded as plain text. */
export interface EncodedPrompt {
  /** Not to be written to: prompts of one conversation share their memory. */
  ids: Int32Array;
  special_text_escaped: boolean;
}

export class Tokenizer {
  readonly addedTokens: AddedTokens;
  readonly added: readonly AddedToken[];
  /** Guards values that go into a template whose output comes to {@link encodeChunks}. */
  readonly guard: ValueGuard;
  readonly #data: TokenizerData;
  readonly #engineClass: TiktokenClass;
  readonly #engine: BpeEngine;
  readonly #pieces = new PieceCache<Int32Array>(CACHE_UNITS_MAX);
  readonly #chunks = new PieceCache<ChunkEncoding>(CACHE_UNITS_MAX);
  readonly #recent = new RecentPrompts();
  #bytes: ByteTable | undefined;
  #ranks: RankTable | undefined;
  #byteIds: Int32Array | undefined;
  #splitter: PieceSplitter | undefined;

  constructor(data: TokenizerData, engineClass: TiktokenClass) {
    this.#data = data;
    this.#engineClass = engineClass;
    this.#engine = new engineClass(data.ranks, {}, SPLIT_PATTERNS[data.split].engine);
    this.added = data.added_tokens;
    this.addedTokens = new AddedTokens(data.added_tokens);
    this.guard = new ValueGuard(data.added_tokens);
  }

  /** Bytes per id; made when first asked for, because encoding does not need it. */
  get bytes(): ByteTable {
    this.#bytes ??= new ByteTable(this.#data);
    return this.#bytes;
  }

  /** One more than the highest id. */
  get vocabSize(): number {
    return this.bytes.size;
  }

  /** Ids of plain text: nothing in it becomes an added token. Text is normalized first where the vocabulary says so. */
  encodePlain(text: string): Int32Array {
    if (text === "") return new Int32Array(0);
    const cached = this.#pieces.get(text);
    if (cached !== undefined) return cached;
    const ids = this.#merge(this.#data.normalizer === "NFC" ? normalizeNfc(text) : text);
    this.#pieces.set(text, ids);
    return ids;
  }

  /** Ids of text that may hold added tokens, as the reference encodes it. */
  encode(text: string): Int32Array {
    return this.encodeChunks([text]).ids;
  }

  /** Ids of `chunks` joined; guarded values in them become plain text. A chunk that was seen before costs a comparison. */
  encodeChunks(chunks: readonly string[]): EncodedPrompt {
    const resumed = this.#recent.resume(chunks);
    const states = [...resumed.states];
    const parts: Int32Array[] = [];
    let { held, bridge, ids, escaped } = states.at(-1)!;
    const put = (part: Int32Array): void => {
      parts.push(part);
      ids += part.length;
    };
    const putPlain = (text: string): void => {
      const restored = this.guard.restore(text);
      escaped ||= restored.escaped;
      put(this.encodePlain(restored.text));
    };
    const putChunk = (chunk: string): void => {
      const encoded = this.#encodeChunk(chunk);
      escaped ||= encoded.escaped;
      bridge += encoded.head;
      if (encoded.tail === null) return;
      putPlain(bridge);
      put(encoded.ids);
      bridge = encoded.tail;
    };
    for (let at = states.at(-1)!.at; at < chunks.length; ) {
      const taken = this.#takeEnough(chunks, at);
      at = taken.at;
      if (this.#isBorder(held, taken.text)) {
        putChunk(held);
        held = taken.text;
        // What follows a short last text is not known yet, so neither is whether this border holds behind more of it.
        if (held.length >= this.addedTokens.lengthMax) states.push({ at, held, bridge, ids, escaped });
      } else held += taken.text;
    }
    if (held !== "") putChunk(held);
    putPlain(bridge);
    return { ids: this.#recent.add(chunks, states, resumed, parts), special_text_escaped: escaped };
  }

  /** The id that stands for one byte. */
  idOfByte(byte: number): number {
    this.#byteIds ??= byteIds(this.bytes, this.#mergeableIds());
    return this.#byteIds[byte]!;
  }

  decode(ids: Iterable<number>): string {
    return this.bytes.decode(ids);
  }

  streamingText(): StreamingText {
    return new StreamingText(this.bytes);
  }

  /** Chunks from `at` on, joined until no added token can reach over all of them. */
  #takeEnough(chunks: readonly string[], at: number): { text: string; at: number } {
    let text = chunks[at]!;
    let next = at + 1;
    while (text.length < this.addedTokens.lengthMax && next < chunks.length) text += chunks[next++]!;
    return { text, at: next };
  }

  /** True when cutting at the border finds the same added tokens as cutting both texts as one. */
  #isBorder(left: string, right: string): boolean {
    return left.length >= this.addedTokens.lengthMax && !this.addedTokens.straddles(left, right);
  }

  #encodeChunk(chunk: string): ChunkEncoding {
    const cached = this.#chunks.get(chunk);
    if (cached !== undefined) return cached;
    const parts: Int32Array[] = [];
    let head: string | null = null;
    let pending = "";
    let escaped = false;
    this.addedTokens.split(chunk, {
      plain: (text) => {
        pending += text;
      },
      token: (id) => {
        if (head === null) head = pending;
        else {
          const restored = this.guard.restore(pending);
          escaped ||= restored.escaped;
          parts.push(this.encodePlain(restored.text));
        }
        parts.push(Int32Array.of(id));
        pending = "";
      },
    });
    const encoded: ChunkEncoding =
      head === null
        ? { head: chunk, ids: new Int32Array(0), tail: null, escaped }
        : { head, ids: joinIds(parts), tail: pending, escaped };
    this.#chunks.set(chunk, encoded);
    return encoded;
  }

  #merge(text: string): Int32Array {
    const regions = longRegions(text, SPLIT_PATTERNS[this.#data.split].asciiLetters);
    if (regions.length === 0) return this.#engineIds(text);
    const parts: Int32Array[] = [];
    let from = 0;
    for (const [start, end] of regions) {
      parts.push(this.#engineIds(text.slice(from, start)), this.#longRegionIds(text.slice(start, end)));
      from = end;
    }
    parts.push(this.#engineIds(text.slice(from)));
    return joinIds(parts);
  }

  #engineIds(text: string): Int32Array {
    if (text === "") return new Int32Array(0);
    const ids = this.#engine.encode_ordinary(text);
    return new Int32Array(ids.buffer, ids.byteOffset, ids.length);
  }

  #mergeableIds(): number[] {
    const added = new Set(this.added.map((token) => token.id));
    return Array.from({ length: this.vocabSize }, (_, id) => id).filter((id) => !added.has(id));
  }

  #longRegionIds(region: string): Int32Array {
    this.#ranks ??= new RankTable(this.bytes, this.#mergeableIds());
    this.#splitter ??= new PieceSplitter(this.#engineClass, SPLIT_PATTERNS[this.#data.split]);
    const ids: number[] = [];
    const short = new Map<string, number[]>();
    for (const piece of this.#splitter.split(region)) {
      let encoded = short.get(piece);
      if (encoded === undefined) {
        encoded = encodeLongPiece(piece, this.#ranks);
        if (piece.length <= 16) short.set(piece, encoded);
      }
      for (const id of encoded) ids.push(id);
    }
    return Int32Array.from(ids);
  }
}

function byteIds(table: ByteTable, ids: readonly number[]): Int32Array {
  const byByte = new Int32Array(256);
  for (const id of ids) {
    const bytes = table.bytesOf(id);
    if (bytes.length === 1) byByte[bytes[0]!] = id;
  }
  return byByte;
}

/** The parts one after the other. */
export function joinIds(parts: readonly Int32Array[]): Int32Array {
  let length = 0;
  for (const part of parts) length += part.length;
  // Every element is written below: clearing the memory first would cost as much as the copy.
  const joined = new Int32Array(Buffer.allocUnsafeSlow(4 * length).buffer, 0, length);
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}
