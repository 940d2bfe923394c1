/** Text to ids and ids to bytes, equal to the reference tokenizer of the vocabulary. Added tokens are found first; what is between them is plain text. */
import { AddedTokens } from "./added-tokens.js";
import { BpeEncoder } from "./bpe-encoder.js";
import type { TiktokenClass } from "./bpe-engine.js";
import { ByteTable, StreamingText } from "./byte-decoder.js";
import { normalizeNfc } from "./nfc.js";
import { PieceCache } from "./piece-cache.js";
import { RankTable } from "./rank-table.js";
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
  /** Bytes per id. */
  readonly bytes: ByteTable;
  readonly #normalizes: boolean;
  readonly #ranks: RankTable;
  readonly #encoder: BpeEncoder;
  readonly #pieces = new PieceCache<Int32Array>(CACHE_UNITS_MAX);
  readonly #chunks = new PieceCache<ChunkEncoding>(CACHE_UNITS_MAX);
  readonly #recent = new RecentPrompts();

  constructor(data: TokenizerData, engine: TiktokenClass) {
    this.#normalizes = data.normalizer === "NFC";
    this.bytes = new ByteTable(data);
    this.#ranks = new RankTable(this.bytes);
    this.#encoder = new BpeEncoder(this.#ranks, engine, SPLIT_PATTERNS[data.split]);
    this.added = data.added_tokens;
    this.addedTokens = new AddedTokens(data.added_tokens);
    this.guard = new ValueGuard(data.added_tokens);
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
    const ids = this.#encoder.encode(this.#normalizes ? normalizeNfc(text) : text);
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
    return this.#ranks.idOf(Uint8Array.of(byte), 0, 1);
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
