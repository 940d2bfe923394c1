/** Bulk comparison of token ids: memory compares first, a loop only where two lines part. */

/** Below this many ids a loop is cheaper than a call into memory compare. */
const LOOP_IDS = 48;
/** Ids in the first memory compare. Each further one is twice as long, so that lines which part early are not read to the end. */
const BLOCK_IDS = 16_384;

/** Ids from a place on. */
export interface IdRange {
  ids: Int32Array;
  start: number;
}

/** Are `length` ids equal, `offset` ids behind the starts of the two ranges? Both are long enough. */
type SliceEquals = (offset: number, length: number) => boolean;
/** Prepares the comparison of two ranges. */
type EqualsFactory = (a: IdRange, b: IdRange) => SliceEquals;

/** For any JavaScript engine. */
export const portableEquals: EqualsFactory = (a, b) => (offset, length) => loopPrefix(a, b, offset, length) === length;

/** memcmp, where the runtime has Node's Buffer. */
const bufferEquals: EqualsFactory = (a, b) => {
  const left = Buffer.from(a.ids.buffer, a.ids.byteOffset, a.ids.byteLength);
  const right = Buffer.from(b.ids.buffer, b.ids.byteOffset, b.ids.byteLength);
  return (offset, length) => {
    const from = (a.start + offset) * 4;
    const to = (b.start + offset) * 4;
    return left.compare(right, to, to + length * 4, from, from + length * 4) === 0;
  };
};

const bulkEquals: EqualsFactory = typeof Buffer === "function" ? bufferEquals : portableEquals;

/** Length of the common prefix of two ranges, at most `length` ids. Each id is compared once, plus a bisection of the block where they part. */
export function commonPrefix(a: IdRange, b: IdRange, length: number, compare: EqualsFactory = bulkEquals): number {
  if (length <= LOOP_IDS) return loopPrefix(a, b, 0, length);
  const equals = compare(a, b);
  let done = 0;
  for (let size = BLOCK_IDS; done < length; size *= 2) {
    const block = Math.min(size, length - done);
    if (!equals(done, block)) return bisect(a, b, equals, { from: done, length: block });
    done += block;
  }
  return length;
}

/** True when the two arrays hold the same ids. */
export function equalIds(a: Int32Array, b: Int32Array): boolean {
  return a.length === b.length && commonPrefix({ ids: a, start: 0 }, { ids: b, start: 0 }, a.length) === a.length;
}

/** The ranges are known to part inside the block; returns where. */
function bisect(a: IdRange, b: IdRange, equals: SliceEquals, block: { from: number; length: number }): number {
  let low = block.from;
  let high = block.from + block.length;
  while (high - low > LOOP_IDS) {
    const half = (high - low) >> 1;
    if (equals(low, half)) low += half;
    else high = low + half;
  }
  return low + loopPrefix(a, b, low, high - low);
}

/** Ids that are equal from `offset` behind the starts on, at most `length`. */
function loopPrefix(a: IdRange, b: IdRange, offset: number, length: number): number {
  const left = a.ids;
  const right = b.ids;
  const from = a.start + offset;
  const to = b.start + offset;
  for (let i = 0; i < length; i++) if (left[from + i] !== right[to + i]) return i;
  return length;
}
