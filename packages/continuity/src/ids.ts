/** Bulk comparison of token ids: memory compares first, a loop only where two lines part. */

/** Below this many ids a loop is cheaper than a call into memory compare. */
const LOOP_IDS = 48;
/** Ids in one memory compare; bounds what is looked at twice when the lines part inside a block. */
const BLOCK_IDS = 16_384;

/** Two ranges of ids of equal length. */
export interface IdRange {
  ids: Int32Array;
  start: number;
}

/** True when both ranges hold the same `length` ids. The caller guarantees that both are long enough. */
type RangeEquals = (a: IdRange, b: IdRange, length: number) => boolean;

function loopPrefix(a: IdRange, b: IdRange, length: number): number {
  const left = a.ids;
  const right = b.ids;
  for (let i = 0; i < length; i++) if (left[a.start + i] !== right[b.start + i]) return i;
  return length;
}

/** For any JavaScript engine. */
export const portableEquals: RangeEquals = (a, b, length) => loopPrefix(a, b, length) === length;

/** memcmp, where the runtime has Node's Buffer. */
const bufferEquals: RangeEquals = (a, b, length) => {
  const left = Buffer.from(a.ids.buffer, a.ids.byteOffset + a.start * 4, length * 4);
  const right = Buffer.from(b.ids.buffer, b.ids.byteOffset + b.start * 4, length * 4);
  return left.equals(right);
};

const bulkEquals: RangeEquals = typeof Buffer === "function" ? bufferEquals : portableEquals;

/** Length of the common prefix of two ranges, at most `length` ids. Each id is compared once, plus a bisection of the block where they part. */
export function commonPrefix(a: IdRange, b: IdRange, length: number, equals: RangeEquals = bulkEquals): number {
  let done = 0;
  while (done < length) {
    const block = Math.min(BLOCK_IDS, length - done);
    if (block <= LOOP_IDS) return done + loopPrefix(shift(a, done), shift(b, done), block);
    if (!equals(shift(a, done), shift(b, done), block))
      return done + bisect(shift(a, done), shift(b, done), block, equals);
    done += block;
  }
  return length;
}

/** True when the two arrays hold the same ids. */
export function equalIds(a: Int32Array, b: Int32Array): boolean {
  return a.length === b.length && commonPrefix({ ids: a, start: 0 }, { ids: b, start: 0 }, a.length) === a.length;
}

function shift(range: IdRange, by: number): IdRange {
  return by === 0 ? range : { ids: range.ids, start: range.start + by };
}

/** The ranges are known to part within `length`. */
function bisect(a: IdRange, b: IdRange, length: number, equals: RangeEquals): number {
  let low = 0;
  let high = length;
  while (high - low > LOOP_IDS) {
    const half = (high - low) >> 1;
    if (equals(shift(a, low), shift(b, low), half)) low += half;
    else high = low + half;
  }
  return low + loopPrefix(shift(a, low), shift(b, low), high - low);
}
