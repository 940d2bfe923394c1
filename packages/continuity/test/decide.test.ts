import { describe, expect, it } from "vitest";
import {
  commit,
  createState,
  type Decision,
  decide,
  type EngineState,
  type EngineTurn,
  setDelivery,
} from "../src/index.js";
import { bareTurn } from "./bare-turn.js";

function play(state: EngineState, turn: EngineTurn): Decision {
  const decision = decide(state, turn);
  commit(state, turn, decision, state.last_commit + 1);
  return decision;
}

describe("decisions from ids alone", () => {
  it("appends while each prompt starts with the line, and stores only what is new", () => {
    const state = createState();
    expect(play(state, bareTurn("a", [1, 2], [3]))).toMatchObject({
      kind: "new_segment",
      reason: "first_turn",
      parent: null,
    });
    const second = play(state, bareTurn("b", [1, 2, 3, 4], [5]));
    expect(second).toMatchObject({ kind: "append", segment: 1, prompt_keep: 3, reason: "extends_tip" });
  });

  it("branches where the prompt extends an interior checkpoint, from the longest shared prefix", () => {
    const state = createState();
    play(state, bareTurn("a", [1, 2], [3]));
    play(state, bareTurn("b", [1, 2, 3, 4, 9], [5]));
    const fork = play(state, bareTurn("c", [1, 2, 3, 4, 7], [6]));
    expect(fork).toMatchObject({
      kind: "branch",
      segment: 2,
      parent: { segment: 1, tokens: 4 },
      prompt_keep: 4,
      reason: "sibling",
    });
    expect(fork.evidence).toMatchObject({ checkpoint_tokens: 3, expected_id: 9, actual_id: 7, kept_sampled: 1 });
  });

  it("prefers a delivered checkpoint over a later one with the same ids", () => {
    const state = createState();
    play(state, bareTurn("a", [1, 2], [3]));
    play(state, bareTurn("b", [1, 2], [3]));
    setDelivery(state, "a", "delivered");
    expect(decide(state, bareTurn("c", [1, 2, 3, 4], [5]))).toMatchObject({ kind: "append", segment: 1 });
  });

  it("never extends an incomplete turn", () => {
    const state = createState();
    play(state, bareTurn("a", [1, 2], [3]));
    play(state, bareTurn("b", [1, 2, 3, 4], [5, 6], { checkpointable: false }));
    const next = play(state, bareTurn("c", [1, 2, 3, 4, 5, 6, 7], [8]));
    expect(next).toMatchObject({ kind: "branch", parent: { segment: 1, tokens: 6 }, reason: "after_incomplete" });
  });

  it("takes the checkpoint that a prompt was built from, unless it is no prefix of that prompt", () => {
    const state = createState();
    play(state, bareTurn("a", [1, 2], [3]));
    play(state, bareTurn("b", [1, 2], [3]));
    play(state, bareTurn("x", [7, 7, 7, 7], [8]));
    const next = bareTurn("c", [1, 2, 3, 4, 5, 6], [9]);
    expect(decide(state, next, { checkpoint: "a" })).toMatchObject({ kind: "append", segment: 1 });
    expect(decide(state, next)).toMatchObject({ kind: "append", segment: 2 });
    expect(decide(state, next, { checkpoint: "x" })).toMatchObject({ kind: "append", segment: 2 });
    expect(decide(state, next, { checkpoint: "no such call" })).toMatchObject({ kind: "append", segment: 2 });
  });

  it("refuses to commit a decision that does not fit the state any more", () => {
    const state = createState();
    play(state, bareTurn("a", [1, 2], [3]));
    const one = bareTurn("b", [1, 2, 3, 4], [5]);
    const two = bareTurn("c", [1, 2, 3, 6], [7]);
    const stale = decide(state, two);
    play(state, one);
    expect(() => commit(state, two, stale, 3)).toThrow(/cannot be appended to/);
    expect(() => commit(state, one, decide(state, one), 3)).toThrow(/committed before/);
    expect(() => commit(state, two, decide(state, two), 2)).toThrow(/must ascend/);
    const opening = decide(state, bareTurn("d", [50], [51]));
    play(state, bareTurn("e", [60], [61]));
    expect(() => commit(state, bareTurn("d", [50], [51]), opening, 9)).toThrow(/is not the next one/);
    expect(state.turns.size).toBe(3);
  });
});
