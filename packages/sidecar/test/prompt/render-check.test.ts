import { describe, expect, it } from "vitest";
import { shadowing } from "../../src/prompt/incremental.js";
import { firstDifference, tokenDiff } from "../../src/prompt/render-check.js";

const ids = (...values: number[]) => Int32Array.from(values);
/** Each id is a letter. */
const renderer = {
  decode: async (values: Int32Array) => String.fromCharCode(...Array.from(values, (id) => 97 + id)),
};

describe("the token diff", () => {
  it("finds the first differing id, also where one side ends", () => {
    expect(firstDifference(ids(1, 2, 3), ids(1, 2, 3))).toBeNull();
    expect(firstDifference(ids(1, 2, 3), ids(1, 4, 3))).toBe(1);
    expect(firstDifference(ids(1, 2), ids(1, 2, 3))).toBe(2);
    expect(firstDifference(ids(), ids(1))).toBe(0);
  });

  it("shows what stands before it and what follows on both sides", async () => {
    expect(await tokenDiff(renderer, ids(0, 1, 2, 3), ids(0, 1, 4), 2)).toBe(
      [
        'token 2 differs (bundle: 4 ids, engine: 3 ids), behind "ab"',
        '  bundle       2 "c", then "d"',
        '  engine       4 "e", then ""',
      ].join("\n"),
    );
    expect(await tokenDiff(renderer, ids(0, 1), ids(0), 1)).toContain("engine   (end)");
  });
});

describe("shadow rendering", () => {
  it.each([
    [0, 0],
    [0.05, 5],
    [0.3, 30],
    [1, 100],
  ])("of a fraction of %d takes %d of 100 calls", (fraction, taken) => {
    const shadowed = shadowing(fraction);
    expect(Array.from({ length: 100 }, shadowed).filter(Boolean)).toHaveLength(taken);
  });
});
