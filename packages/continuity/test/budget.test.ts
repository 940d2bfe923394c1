import { expect, it } from "vitest";
import { commit, commonPrefix, createState, decide, type EngineState } from "../src/index.js";
import type { TreeNode } from "../src/prefix-tree.js";
import { bareTurn } from "./bare-turn.js";
import { Random } from "./random-harness.js";

it("the prefix check of 100k ids runs at 0.8 times a bare memory compare or faster (best of short interleaved rounds)", () => {
  const ids = Int32Array.from({ length: 100_000 }, (_, i) => (i * 7919) % 150_000);
  const copy = ids.slice();
  const left = Buffer.from(ids.buffer);
  const right = Buffer.from(copy.buffer);
  const time = (work: () => unknown): number => {
    const start = performance.now();
    for (let i = 0; i < 10; i++) work();
    return performance.now() - start;
  };
  let bare = Number.POSITIVE_INFINITY;
  let checked = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 400; round++) {
    bare = Math.min(
      bare,
      time(() => left.equals(right)),
    );
    checked = Math.min(
      checked,
      time(() => commonPrefix({ ids, start: 0 }, { ids: copy, start: 0 }, ids.length)),
    );
  }
  expect(bare / checked).toBeGreaterThanOrEqual(0.8);
});

it("ids are held once: drift at every turn costs memory in the new ids only", () => {
  const random = new Random(3);
  const state = createState();
  const prefix = Array.from({ length: 5000 }, () => random.below(50_000));
  let added = prefix.length;
  for (let i = 0; i < 60; i++) {
    const turn = bareTurn(`t${i}`, prefix, [60_000 + i, 1, 2, 3, 4, 5]);
    commit(state, turn, decide(state, turn), i + 1);
    prefix.push(60_000 + i, 1, 9, i);
    added += 6 + 4;
  }
  expect(state.segments.size).toBe(60);
  expect(heldIds(state)).toBeLessThanOrEqual(added * 1.5);
});

function heldIds(state: EngineState): number {
  const stores = new Map<object, number>();
  const visit = (node: TreeNode): void => {
    stores.set(node.store, node.store.ids.length);
    for (const child of node.children.values()) visit(child);
  };
  visit(state.tree);
  return [...stores.values()].reduce((sum, length) => sum + length, 0);
}
