import type { SharedPrefix } from "@tito/format";
import { expect, it } from "vitest";
import { commit, createState, type Decision, decide, type EngineTurn, setDelivery } from "../src/index.js";
import { bareTurn } from "./bare-turn.js";
import { type NaiveDecision, NaiveEngine } from "./naive-engine.js";

type Move = {
  how: "fresh" | "extend" | "extend_other" | "identical" | "drift";
  from: number;
  whole: boolean;
  sample: number;
};

const TURNS_MAX = 5;
const LINEAGES_MAX = 3;

/** Every move that is possible after `count` turns with `fresh` lineages begun. */
function moves(count: number, fresh: number): Move[] {
  const out: Move[] = [];
  const last = count === TURNS_MAX - 1;
  for (const whole of last ? [true] : [true, false]) {
    if (fresh < LINEAGES_MAX) out.push({ how: "fresh", from: fresh, whole, sample: 70 });
    for (let from = 0; from < count; from++)
      for (const how of ["extend", "extend_other", "identical", "drift"] as const)
        out.push({ how, from, whole, sample: how === "extend_other" ? 71 : 70 });
  }
  return out;
}

function promptOf(move: Move, earlier: readonly { prompt: number[]; sampled: number[] }[]): number[] {
  if (move.how === "fresh") return [1, 10 + move.from, 2];
  const base = earlier[move.from]!;
  switch (move.how) {
    case "extend":
      return [...base.prompt, ...base.sampled, 50];
    case "extend_other":
      return [...base.prompt, ...base.sampled, 51, 52];
    case "identical":
      return base.prompt;
    case "drift":
      return [...base.prompt, base.sampled[0]!, 60, 50];
  }
}

class Pair {
  private readonly state = createState();
  private readonly naive = new NaiveEngine();
  private readonly played: { prompt: number[]; sampled: number[] }[] = [];
  private readonly parents = new Map<number, SharedPrefix | null>();

  constructor(private readonly path: readonly Move[]) {
    for (const move of path) this.commit(move);
  }

  private turn(move: Move): EngineTurn {
    const prompt = promptOf(move, this.played);
    return bareTurn(`t${this.played.length}`, prompt, [move.sample, 80, 3], { checkpointable: move.whole });
  }

  /** Both engines decide the next turn; the states stay as they are. */
  check(move: Move): { turn: EngineTurn; decision: Decision } {
    const turn = this.turn(move);
    const prompt = [...turn.prompt_ids];
    const expected = this.naive.decide(prompt);
    const decision = decide(this.state, turn);
    const opens = decision.kind !== "append";
    const parent = opens ? decision.parent : null;
    const sampled = parent === null ? null : this.naive.sampledWithin(parent.segment, parent.tokens, this.parents);
    const fits =
      decision.kind === expected.kind &&
      (opens || decision.segment === expected.segment) &&
      decision.evidence.checkpoint_call_id === expected.checkpoint &&
      decision.evidence.match_tokens === expected.match &&
      (sampled === null || decision.evidence.kept_sampled === sampled) &&
      (!opens || this.isLongestLine(parent, expected));
    if (!fits) expect({ path: [...this.path, move], decision }).toEqual({ decision: expected, sampled });
    return { turn, decision };
  }

  private isLongestLine(parent: SharedPrefix | null, expected: NaiveDecision): boolean {
    if (parent === null) return expected.match === 0;
    return parent.tokens === expected.match && expected.lines.includes(parent.segment);
  }

  private commit(move: Move): void {
    const { turn, decision } = this.check(move);
    const number = this.played.length + 1;
    const prompt = [...turn.prompt_ids];
    const sampled = [...turn.sampled_ids];
    const delivered = number % 2 === 0;
    commit(this.state, turn, decision, number);
    if (delivered) setDelivery(this.state, turn.call_id, "delivered");
    if (decision.kind !== "append") this.parents.set(decision.segment, decision.parent);
    this.naive.commit({
      call_id: turn.call_id,
      segment: decision.segment,
      ids: [...prompt, ...sampled],
      prompt: prompt.length,
      checkpointable: move.whole,
      delivered,
    });
    this.played.push({ prompt, sampled });
  }
}

it("agrees with the plain rules on every history of up to 5 turns and 3 lineages", () => {
  let histories = 0;
  const grow = (path: Move[], fresh: number): void => {
    const next = moves(path.length, fresh);
    if (path.length === TURNS_MAX - 1) {
      const pair = new Pair(path);
      for (const move of next) pair.check(move);
      histories += next.length;
      return;
    }
    for (const move of next) grow([...path, move], fresh + (move.how === "fresh" ? 1 : 0));
  };
  grow([], 0);
  console.log(`exhaustive: ${histories} histories of ${TURNS_MAX} turns, every shorter one as its beginning`);
  expect(histories).toBeGreaterThan(100_000);
});
