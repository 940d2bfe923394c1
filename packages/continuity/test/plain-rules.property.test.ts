/**
 * The rules where ids repeat so often that everything coincides: two ids, empty answers, deliveries told late, checkpoints fixed when the prompt was built.
 * More by hand: TITO_RUNS=100000 vitest run … plain-rules. A failure prints its seed and the smallest history.
 */
import fc from "fast-check";
import { expect, it } from "vitest";
import { commit, createState, decide, lineIds, setDelivery } from "../src/index.js";
import { bareTurn } from "./bare-turn.js";
import { NaiveEngine } from "./naive-engine.js";

const RUNS = Number(process.env.TITO_RUNS ?? 300);

const ids = (maxLength: number) => fc.array(fc.constantFrom(1, 2), { maxLength });
const step = fc.record({
  /** How the prompt begins: with an earlier turn's whole line, its prompt, or nothing. */
  from: fc.constantFrom("line", "line", "prompt", "nothing"),
  base: fc.nat(7),
  more: ids(2),
  sampled: ids(3),
  whole: fc.boolean(),
  /** The turn that the prompt was built from in incremental mode, counted back; null: full history. */
  fixed: fc.option(fc.nat(7)),
  /** An answer whose delivery is told now, counted back. */
  told: fc.option(fc.tuple(fc.nat(3), fc.constantFrom("delivered" as const, "failed" as const))),
});
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

function startsWith(long: readonly number[], short: readonly number[]): boolean {
  return short.length <= long.length && short.every((id, i) => id === long[i]);
}

function play(steps: readonly Step[]): void {
  const state = createState();
  const naive = new NaiveEngine();
  const parents = new Map<number, { segment: number; tokens: number } | null>();
  for (const [now, each] of steps.entries()) {
    const base = naive.turns[now - 1 - (each.base % Math.max(1, now))];
    const begin =
      base === undefined || each.from === "nothing"
        ? []
        : base.ids.slice(0, each.from === "line" ? undefined : base.prompt);
    const prompt = [...begin, ...each.more];
    const fixed = each.fixed === null ? undefined : naive.turns[now - 1 - each.fixed];
    const turn = bareTurn(`t${now}`, prompt, each.sampled, { checkpointable: each.whole });
    const decision = decide(state, turn, each.fixed === null ? {} : { checkpoint: fixed?.call_id ?? "unknown" });
    const expected = naive.decide(prompt);
    // A fixed checkpoint wins when it is one, whatever else is longer.
    if (fixed?.checkpointable && startsWith(prompt, fixed.ids)) {
      const isTip = naive.turns.filter((other) => other.segment === fixed.segment).at(-1) === fixed;
      Object.assign(expected, {
        kind: isTip ? "append" : "branch",
        segment: isTip ? fixed.segment : null,
        checkpoint: fixed.call_id,
      });
    }
    const { evidence } = decision;
    const opens = decision.kind !== "append";
    expect([decision.kind, evidence.checkpoint_call_id, evidence.match_tokens]).toEqual([
      expected.kind,
      expected.checkpoint,
      expected.match,
    ]);
    if (!opens) expect(decision.segment).toBe(expected.segment);
    else if (decision.parent === null) expect(expected.match).toBe(0);
    else {
      expect(decision.parent.tokens).toBe(expected.match);
      expect(expected.lines).toContain(decision.parent.segment);
      expect(evidence.kept_sampled).toBe(naive.sampledWithin(decision.parent.segment, expected.match, parents));
    }
    commit(state, turn, decision, now + 1);
    if (opens) parents.set(decision.segment, decision.parent);
    const line = [...prompt, ...each.sampled];
    const checkpointable = each.whole && each.sampled.length > 0;
    naive.commit({
      call_id: turn.call_id,
      segment: decision.segment,
      ids: line,
      prompt: prompt.length,
      checkpointable,
      delivered: false,
    });
    expect([...lineIds(state, { segment: decision.segment, tokens: line.length })]).toEqual(line);
    const late = each.told === null ? undefined : naive.turns[now - each.told[0]];
    if (late !== undefined) {
      late.delivered = each.told![1] === "delivered";
      setDelivery(state, late.call_id, each.told![1]);
    }
  }
}

it(
  `${RUNS} histories of two ids are decided as the plain rules say`,
  () => {
    fc.assert(fc.property(fc.array(step, { minLength: 1, maxLength: 12 }), play), { numRuns: RUNS });
  },
  RUNS * 20 + 60_000,
);
