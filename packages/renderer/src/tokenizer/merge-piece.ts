/**
 * Byte-pair encoding of one pre-tokenizer piece: of all neighbours whose joined bytes are a token, those that make the lowest id are joined first, from the left.
 * Short pieces are looked through for the lowest after each merge. In long ones, where that would take quadratic time, positions wait by rank.
 */
import type { RankTable } from "./rank-table.js";

const SHORT_BYTES_MAX = 128;
const NO_RANK = 0x7fff_ffff;

/** Where the parts of a short piece begin, and the rank that each would make with the next; written anew for every piece. */
const starts = new Int32Array(SHORT_BYTES_MAX + 2);
const ranks = new Int32Array(SHORT_BYTES_MAX + 2);

/** Writes the ids of the piece `text[from, to)` into `out` at `at`; returns where they end. */
export function encodePiece(
  table: RankTable,
  text: Uint8Array,
  from: number,
  to: number,
  out: Int32Array,
  at: number,
): number {
  const whole = table.idOf(text, from, to);
  if (whole >= 0) {
    out[at] = whole;
    return at + 1;
  }
  return to - from > SHORT_BYTES_MAX
    ? encodeLongPiece(table, text.subarray(from, to), out, at)
    : encodeShortPiece(table, text, from, to, out, at);
}

function encodeShortPiece(
  table: RankTable,
  text: Uint8Array,
  from: number,
  to: number,
  out: Int32Array,
  outAt: number,
): number {
  let parts = to - from;
  for (let i = 0; i <= parts; i++) starts[i] = from + i;
  const rankAt = (i: number): number => {
    const id = i + 1 < parts ? table.idOf(text, starts[i]!, starts[i + 2]!) : -1;
    return id < 0 ? NO_RANK : id;
  };
  for (let i = 0; i < parts; i++) ranks[i] = rankAt(i);
  for (;;) {
    let lowest = NO_RANK;
    let left = -1;
    for (let i = 0; i < parts - 1; i++) {
      if (ranks[i]! >= lowest) continue;
      lowest = ranks[i]!;
      left = i;
    }
    if (left < 0) break;
    starts.copyWithin(left + 1, left + 2, parts + 1);
    ranks.copyWithin(left + 1, left + 2, parts);
    parts--;
    ranks[left] = rankAt(left);
    if (left > 0) ranks[left - 1] = rankAt(left - 1);
  }
  let at = outAt;
  for (let i = 0; i < parts; i++) out[at++] = table.idOf(text, starts[i]!, starts[i + 1]!);
  return at;
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

/** A merge only ever makes pairs of higher rank, so each rank is taken once, left to right. */
function encodeLongPiece(table: RankTable, bytes: Uint8Array, out: Int32Array, outAt: number): number {
  const { length } = bytes;
  /** End of the part that begins at an index; 0 where none begins any more. */
  const ends = new Int32Array(length);
  const previous = new Int32Array(length);
  for (let i = 0; i < length; i++) {
    ends[i] = i + 1;
    previous[i] = i - 1;
  }
  const queue = new MergeQueue();
  const joined = (left: number): number => (ends[left]! < length ? table.idOf(bytes, left, ends[ends[left]!]!) : -1);
  const offer = (left: number): void => {
    const id = joined(left);
    if (id >= 0) queue.add(id, left);
  };
  for (let i = 0; i < length - 1; i++) offer(i);
  for (let batch = queue.take(); batch !== undefined; batch = queue.take()) {
    const [rank, positions] = batch;
    for (const left of positions) {
      if (ends[left] === 0 || joined(left) !== rank) continue;
      const right = ends[left]!;
      ends[left] = ends[right]!;
      ends[right] = 0;
      if (ends[left]! < length) previous[ends[left]!] = left;
      offer(left);
      if (previous[left]! >= 0) offer(previous[left]!);
    }
  }
  let at = outAt;
  for (let i = 0; i < length; i = ends[i]!) out[at++] = table.idOf(bytes, i, ends[i]!);
  return at;
}
