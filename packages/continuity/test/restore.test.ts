import { describe, expect, it } from "vitest";
import { historyMessages } from "../src/history.js";
import { type Decision, decide, type EngineTurn, isCheckpointable, type RestoredTurn, restore } from "../src/index.js";
import { bareTurn } from "./bare-turn.js";
import { Chat, calls, result, user } from "./chat.js";
import { recordOf } from "./records.js";

/** A conversation of two turns, a drifted third one in a second segment, and its records. */
function recorded(): { chat: Chat; turns: RestoredTurn[] } {
  const turns: RestoredTurn[] = [];
  const chat = new Chat((turn: EngineTurn, decision: Decision, commit: number) =>
    turns.push({
      segment: decision.segment,
      parent: decision.kind === "append" ? null : decision.parent,
      continues: decision.kind === "append" ? null : decision.continues,
      commit,
      delivery: "delivered",
      record: recordOf(turn, decision),
    }),
  );
  const first = [user("go")];
  const second = [...first, calls("a"), result("a", "out")];
  chat.ask(first, calls("a"));
  chat.ask(second, calls("b"));
  chat.ask([...second, { ...calls("b"), content: "changed" }, result("b", "out")], calls("c"));
  return { chat, turns };
}

describe("restore", () => {
  it("gives a state that decides like the one that was lost, with the same messages", () => {
    const { chat, turns } = recorded();
    const { state, skipped } = restore(turns);
    expect(skipped).toEqual([]);
    for (const [id, turn] of chat.state.turns) {
      const restored = state.turns.get(id)!;
      expect(historyMessages(restored.history)).toEqual(historyMessages(turn.history));
      expect([restored.prompt_tokens, restored.end_tokens, restored.sampled_tokens]).toEqual([
        turn.prompt_tokens,
        turn.end_tokens,
        turn.sampled_tokens,
      ]);
    }
    expect(state.next_segment).toBe(chat.state.next_segment);
    expect(state.last_commit).toBe(3);
  });

  it("leaves out what a missing file made unreadable, says so, and never gives its numbers out again", () => {
    const { turns } = recorded();
    const { state, skipped } = restore(turns.slice(1));
    expect(skipped).toEqual([
      { call_id: "t2", why: "earlier turns of this segment are missing" },
      { call_id: "t3", why: expect.stringMatching(/^segment 1 has no \d+ tokens$/) },
    ]);
    const turn = bareTurn("new", [900, 901], [902]);
    expect(decide(state, turn)).toMatchObject({ kind: "new_segment", segment: 3 });
    expect(state.last_commit).toBe(3);
  });

  it("leaves out a turn that is there twice or out of order", () => {
    const { turns } = recorded();
    const again = { ...turns[1]!, commit: 9 };
    expect(restore([...turns, again]).skipped).toEqual([
      { call_id: "t2", why: "a turn of this call is there already" },
    ]);
    expect(restore([turns[1]!, turns[0]!]).skipped.map((one) => one.call_id)).toEqual(["t2", "t1"]);
  });
});

describe("isCheckpointable", () => {
  const turn = { sampled_ids: Int32Array.of(1), finish_reason: "stop" as const, defects: [] as string[] };

  it("C4.27: missing log probabilities or usage keep a checkpoint; missing or disagreeing ids and aborts do not", () => {
    expect(isCheckpointable(turn)).toBe(true);
    expect(isCheckpointable({ ...turn, defects: ["logprobs_missing", "usage_missing"] })).toBe(true);
    expect(isCheckpointable({ ...turn, finish_reason: "length" })).toBe(true);
    expect(isCheckpointable({ ...turn, finish_reason: "abort" })).toBe(false);
    expect(isCheckpointable({ ...turn, sampled_ids: new Int32Array(0) })).toBe(false);
    for (const defect of ["ids_invalid", "completion_count_disagrees", "client_gone", "aborted_by_seal", "made up"])
      expect([defect, isCheckpointable({ ...turn, defects: [defect] })]).toEqual([defect, false]);
  });
});
