/**
 * Byte-pair encoding of one long piece, in time near linear in its length: merges are taken by rank from buckets of positions
 * instead of by scanning the piece for the lowest rank after each merge.
 */

import type { ByteTable } from "./byte-decoder.js";

/** Ids by byte sequence, spelled as Latin-1 text. */
export class RankTable {
  readonly #idByBytes = new Map<string, number>();
  readonly #bytesById: readonly (string | undefined)[];
  readonly #pairs = new Map<number, number>();

  /** `ids` are the ids that merges can make: no added tokens among them. */
  constructor(bytes: ByteTable, ids: Iterable<number>) {
    const bytesById: (string | undefined)[] = [];
    for (const id of ids) {
      const text = Buffer.from(bytes.bytesOf(id)).toString("latin1");
      if (text === "") continue;
      bytesById[id] = text;
      this.#idByBytes.set(text, id);
    }
    this.#bytesById = bytesById;
  }

  idOf(latin1: string): number | undefined {
    return this.#idByBytes.get(latin1);
  }

  /** Id of the two tokens' bytes joined, -1 when that is no token. */
  merged(left: number, right: number): number {
    const key = left * 0x40_0000 + right;
    const known = this.#pairs.get(key);
    if (known !== undefined) return known;
    const id = this.#idByBytes.get(this.#bytesById[left]! + this.#bytesById[right]!) ?? -1;
    if (this.#pairs.size > 500_000) this.#pairs.clear();
    this.#pairs.set(key, id);
    return id;
  }
}

/** Positions waiting per rank; ranks come out in ascending order. */
class MergeQueue {
  readonly #positions = new Map<number, number[]>();
  readonly #heap: number[] = [];

  add(rank: number, position: number): void {
    const list = this.#positions.get(rank);
    if (list !== undefined) {
      list.push(position);
      return;
    }
    this.#positions.set(rank, [position]);
    this.#push(rank);
  }

  /** The lowest rank with its positions, ascending; undefined when nothing waits. */
  take(): [rank: number, positions: Int32Array] | undefined {
    const rank = this.#pop();
    if (rank === undefined) return undefined;
    const positions = Int32Array.from(this.#positions.get(rank)!).sort();
    this.#positions.delete(rank);
    return [rank, positions];
  }

  #push(rank: number): void {
    const heap = this.#heap;
    let i = heap.push(rank) - 1;
    while (i > 0) {
      const up = (i - 1) >> 1;
      if (heap[up]! <= rank) break;
      heap[i] = heap[up]!;
      i = up;
    }
    heap[i] = rank;
  }

  #pop(): number | undefined {
    const heap = this.#heap;
    const top = heap[0];
    const last = heap.pop();
    if (top === undefined || last === undefined || heap.length === 0) return top;
    let i = 0;
    for (;;) {
      let down = 2 * i + 1;
      if (down >= heap.length) break;
      if (down + 1 < heap.length && heap[down + 1]! < heap[down]!) down++;
      if (heap[down]! >= last) break;
      heap[i] = heap[down]!;
      i = down;
    }
    heap[i] = last;
    return top;
  }
}

/** Ids of one pre-tokenizer piece. A merge only ever makes pairs of higher rank, so each rank is taken once, left to right. */
export function encodeLongPiece(piece: string, table: RankTable): number[] {
  const bytes = Buffer.from(piece, "utf8");
  const whole = bytes.length < 256 ? table.idOf(bytes.toString("latin1")) : undefined;
  if (whole !== undefined) return [whole];
  const length = bytes.length;
  const ids = new Int32Array(length);
  const next = new Int32Array(length);
  const previous = new Int32Array(length);
  for (let i = 0; i < length; i++) {
    ids[i] = table.idOf(String.fromCharCode(bytes[i]!))!;
    next[i] = i + 1;
    previous[i] = i - 1;
  }
  const queue = new MergeQueue();
  const offer = (left: number): void => {
    const right = next[left]!;
    if (right >= length) return;
    const id = table.merged(ids[left]!, ids[right]!);
    if (id >= 0) queue.add(id, left);
  };
  for (let i = 0; i < length - 1; i++) offer(i);
  for (let batch = queue.take(); batch !== undefined; batch = queue.take()) {
    const [rank, positions] = batch;
    for (const left of positions) {
      const right = next[left]!;
      if (ids[left]! < 0 || right >= length || table.merged(ids[left]!, ids[right]!) !== rank) continue;
      ids[left] = rank;
      ids[right] = -1;
      next[left] = next[right]!;
      if (next[right]! < length) previous[next[right]!] = left;
      offer(left);
      if (previous[left]! >= 0) offer(previous[left]!);
    }
  }
  const out: number[] = [];
  for (let i = 0; i < length; i = next[i]!) out.push(ids[i]!);
  return out;
}
