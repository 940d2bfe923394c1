import { expect, it } from "vitest";
import { commonPrefix, equalIds, portableEquals } from "../src/index.js";
import { Random } from "./random-harness.js";

it("finds the first difference wherever it is, with and without memory compare", () => {
  const random = new Random(7);
  for (let round = 0; round < 400; round++) {
    const length = random.below(40_000);
    const a = Int32Array.from({ length: length + 8 }, () => random.below(4) - 2);
    const b = a.slice();
    const startA = random.below(8);
    const start = random.below(8);
    const shifted = new Int32Array(length + 8);
    shifted.set(b.subarray(startA, startA + length), start);
    const at = random.below(length + 1);
    if (at < length) shifted[start + at] = 99;
    const left = { ids: a, start: startA };
    const right = { ids: shifted, start };
    expect([round, commonPrefix(left, right, length)]).toEqual([round, at]);
    expect([round, commonPrefix(left, right, length, portableEquals)]).toEqual([round, at]);
  }
});

it("compares ids inside larger buffers, where they are not aligned to the start", () => {
  const buffer = new Int32Array([9, 1, 2, 3, 9]);
  expect(equalIds(buffer.subarray(1, 4), Int32Array.of(1, 2, 3))).toBe(true);
  expect(equalIds(buffer.subarray(1, 4), Int32Array.of(1, 2, 4))).toBe(false);
  expect(equalIds(buffer.subarray(1, 4), Int32Array.of(1, 2))).toBe(false);
  expect(equalIds(new Int32Array(0), new Int32Array(0))).toBe(true);
});
