/**
 * Random trees against the plain rules, with the spread printed. 10^4 by default; by hand: TITO_TREES=100000 vitest run … random-trees.
 * A failure names its seed.
 */
import type { SharedPrefix, TurnRecord } from "@tito/format";
import { expect, it } from "vitest";
import {
  closeSegment,
  commit,
  createState,
  type Decision,
  decide,
  driftReport,
  type EngineState,
  type EngineTurn,
  OPENING_REASONS,
  type ReportedTurn,
  type RestoredTurn,
  restore,
  setDelivery,
} from "../src/index.js";
import { RandomHarness, type Step } from "./random-harness.js";
import { recordOf } from "./records.js";

const TREES = Number(process.env.TITO_TREES ?? 10_000);

interface Committed {
  turn: EngineTurn;
  decision: Decision;
  commit: number;
  delivered: boolean;
}

/** Plays a tree, and calls back before every commit. */
function play(steps: readonly Step[], each: (state: EngineState, committed: Committed) => void): Committed[] {
  let state = createState();
  const done: Committed[] = [];
  for (const step of steps) {
    if (step.kind === "restart") state = restarted(done);
    else if (step.kind === "close") {
      const of = done.find((one) => one.turn.call_id === step.of);
      if (of !== undefined) closeSegment(state, of.decision.segment, "parked");
    } else {
      const { turn, delivered } = step;
      const committed = { turn, decision: decide(state, turn), commit: done.length + 1, delivered };
      each(state, committed);
      commit(state, turn, committed.decision, committed.commit);
      setDelivery(state, turn.call_id, delivered ? "delivered" : "failed");
      done.push(committed);
    }
  }
  return done;
}

function restarted(done: readonly Committed[]): EngineState {
  const turns = done.map(
    ({ turn, decision, commit, delivered }): RestoredTurn => ({
      segment: decision.segment,
      parent: decision.kind === "append" ? null : decision.parent,
      continues: decision.kind === "append" ? null : decision.continues,
      commit,
      delivery: delivered ? "delivered" : "failed",
      record: recordOf(turn, decision) as TurnRecord,
    }),
  );
  const { state, skipped } = restore(turns);
  expect(skipped).toEqual([]);
  return state;
}

/** `expect` is too slow to be called half a million times. */
function must(holds: boolean, what: string): void {
  if (!holds) throw new Error(what);
}

/** The whole line of every segment, from decisions and ids alone, as a reader of the files builds it. */
class Lines {
  readonly ids = new Map<number, Int32Array>();
  /** Per segment: from where on its ids are its own. */
  readonly ownFrom = new Map<number, number>();

  add({ turn, decision }: Committed): void {
    const opens = decision.kind !== "append";
    const place: SharedPrefix | null = opens
      ? decision.parent
      : { segment: decision.segment, tokens: decision.prompt_keep };
    const kept = place === null ? new Int32Array(0) : this.ids.get(place.segment)!.subarray(0, place.tokens);
    if (opens) this.ownFrom.set(decision.segment, kept.length);
    else must(kept.length === this.ids.get(decision.segment)!.length, "an append keeps the whole line");
    must(kept.length === decision.prompt_keep, "prompt_keep is the shared part of the line");
    must(plainPrefix(kept, turn.prompt_ids) === kept.length, "the kept ids are the prompt's own");
    const line = new Int32Array(turn.prompt_ids.length + turn.sampled_ids.length);
    line.set(turn.prompt_ids);
    line.set(turn.sampled_ids, turn.prompt_ids.length);
    this.ids.set(decision.segment, line);
  }

  /** Length of the longest common prefix of a prompt with any line. */
  match(prompt: Int32Array): number {
    let longest = 0;
    for (const line of this.ids.values()) longest = Math.max(longest, plainPrefix(prompt, line));
    return longest;
  }
}

function plainPrefix(a: Int32Array, b: Int32Array): number {
  let i = 0;
  while (i < a.length && i < b.length && a[i] === b[i]) i++;
  return i;
}

/** The ids part of a decision, checked against what the lines say. */
function checkIds(lines: Lines, done: readonly Committed[], { turn, decision }: Committed): void {
  const prompt = turn.prompt_ids;
  const end = ({ turn: { prompt_ids, sampled_ids } }: Committed): number => prompt_ids.length + sampled_ids.length;
  const isPrefix = ({ turn: { prompt_ids, sampled_ids } }: Committed): boolean =>
    plainPrefix(prompt, prompt_ids) === prompt_ids.length &&
    plainPrefix(prompt.subarray(prompt_ids.length), sampled_ids) === sampled_ids.length;
  const best = done
    .filter((one) => one.turn.checkpointable && isPrefix(one))
    .sort((a, b) => end(b) - end(a) || Number(b.delivered) - Number(a.delivered) || b.commit - a.commit)[0];
  const { evidence } = decision;
  must(evidence.match_tokens === lines.match(prompt), "the match is the longest common prefix with any line");
  must(evidence.checkpoint_call_id === (best?.turn.call_id ?? null), "the longest checkpoint wins");
  must((decision.kind === "new_segment") === (best === undefined), "a new segment is one without a checkpoint");
  if (decision.kind === "append") return;
  const tokens = decision.continues === null ? evidence.match_tokens : end(best!);
  must((decision.parent?.tokens ?? 0) === tokens, "an opening refers to all that it shares");
}

/** Every sampled token stands exactly once among the ids that segments call their own. */
function checkOwnership(lines: Lines, done: readonly Committed[]): void {
  const owned = new Set<string>();
  let sampled = 0;
  for (const { turn, decision } of done) {
    must(turn.prompt_ids.length >= lines.ownFrom.get(decision.segment)!, "sampled ids are never inherited");
    sampled += turn.sampled_ids.length;
    turn.sampled_ids.forEach((_, i) => {
      owned.add(`${decision.segment}:${turn.prompt_ids.length + i}`);
    });
  }
  must(owned.size === sampled, "no two sampled tokens share a place");
}

interface Spread {
  turns: Map<number, number>;
  segments: Map<number, number>;
  reported: ReportedTurn[];
}

function playTree(seed: number, steps: readonly Step[], spread: Spread): void {
  const lines = new Lines();
  const before: Committed[] = [];
  const done = play(steps, (_, committed) => {
    checkIds(lines, before, committed);
    lines.add(committed);
    before.push(committed);
  });
  checkOwnership(lines, done);
  if (seed % 10 === 0) {
    const again = play(steps, () => {});
    expect(again.map((one) => one.decision)).toEqual(done.map((one) => one.decision));
  }
  add(spread.turns, done.length);
  add(spread.segments, lines.ids.size);
  for (const { turn, decision } of done) spread.reported.push({ decision, prompt_tokens: turn.prompt_ids.length });
}

it(
  `${TREES} random trees agree with the plain rules, own each sampled token once, decide alike every time, and show every reason`,
  () => {
    const harness = new RandomHarness();
    const spread: Spread = { turns: new Map(), segments: new Map(), reported: [] };
    for (let seed = 1; seed <= TREES; seed++) {
      const steps = harness.tree(seed);
      try {
        playTree(seed, steps, spread);
      } catch (error) {
        throw new Error(`tree of seed ${seed}`, { cause: error });
      }
    }
    const report = driftReport(spread.reported);
    console.log(`turns per tree     ${print(spread.turns)}`);
    console.log(`segments per tree  ${print(spread.segments)}`);
    console.log(`decisions          ${JSON.stringify(report.decisions)}`);
    console.log(`reasons            ${JSON.stringify(Object.fromEntries(report.reasons))}`);
    console.log(`drift causes       ${[...report.causes].map(([cause, cost]) => `${cause} ${cost.turns}`).join(", ")}`);
    const rare = Object.keys(OPENING_REASONS).filter((reason) => (report.reasons.get(reason) ?? 0) < 100);
    expect(rare).toEqual([]);
    expect(Math.min(...Object.values(report.decisions))).toBeGreaterThanOrEqual(100);
  },
  TREES * 12 + 60_000,
);

function add(counts: Map<number, number>, value: number): void {
  counts.set(value, (counts.get(value) ?? 0) + 1);
}

function print(counts: ReadonlyMap<number, number>): string {
  return [...counts]
    .sort(([a], [b]) => a - b)
    .map(([value, count]) => `${value}:${count}`)
    .join(" ");
}
