/** What several seeds of one arm come to together. */
import { HABITS, type Habit } from "../habits/habit.js";
import type { HeldOut, IterationRow } from "../loop/iteration-row.js";
import type { ArmName } from "../loop/options.js";
import { interval95 } from "./interval.js";

/** One arm with one seed, as far as it came. */
export interface ArmResult {
  readonly arm: ArmName;
  readonly seed: number;
  readonly rows: readonly IterationRow[];
  /** By weight version: the first and the last. */
  readonly heldOut: ReadonlyMap<number, HeldOut>;
}

/** k of n with its 95 % interval. */
export interface Share {
  readonly solved: number;
  readonly rollouts: number;
  readonly low: number;
  readonly high: number;
}

export interface PooledArm {
  readonly arm: ArmName;
  readonly seeds: readonly number[];
  /** Training rollouts, by iteration. */
  readonly curve: readonly Share[];
  /** Held-out tasks, by weight version. */
  readonly heldOut: ReadonlyMap<number, Share>;
  readonly lastVersion: number;
  /** Of the held-out rollouts with the last weights. */
  readonly habits: Readonly<Record<Habit, number>>;
  readonly tokensTrained: number;
  readonly tokensNeverSampled: number;
  readonly tokensStale: number;
  readonly recordedOffMax: number | null;
  readonly ratioOffMax: number;
  /** Of the first iteration, before anything was trained. */
  readonly firstMeanLogprob: number | null;
  readonly lastMeanLogprob: number | null;
  readonly seconds: number;
}

/** Pools the results of one arm; there is at least one. */
export function poolArm(results: readonly ArmResult[]): PooledArm {
  const rows = results.flatMap((result) => result.rows);
  const sum = (of: (row: IterationRow) => number) => rows.reduce((total, row) => total + of(row), 0);
  const iterations = Math.max(0, ...results.map((result) => result.rows.length));
  const versions = [...new Set(results.flatMap(({ heldOut }) => [...heldOut.keys()]))].sort((a, b) => a - b);
  const heldOut = new Map(
    versions.map((version) => [version, share(results.flatMap((result) => result.heldOut.get(version) ?? []))]),
  );
  const lastVersion = versions.at(-1) ?? 0;
  const recorded = rows.flatMap((row) => row.recordedOffMax ?? []);
  return {
    arm: results[0]!.arm,
    seeds: results.map(({ seed }) => seed),
    curve: Array.from({ length: iterations }, (_, index) => share(results.flatMap((one) => one.rows[index] ?? []))),
    heldOut,
    lastVersion,
    habits: pooledHabits(results.flatMap((result) => result.heldOut.get(lastVersion) ?? [])),
    tokensTrained: sum((row) => row.tokensTrained),
    tokensNeverSampled: sum((row) => row.tokensNeverSampled),
    tokensStale: sum((row) => row.tokensStale),
    recordedOffMax: recorded.length === 0 ? null : Math.max(...recorded),
    ratioOffMax: Math.max(0, ...rows.map((row) => row.ratioOffMax)),
    firstMeanLogprob: mean(results.flatMap(({ rows: own }) => own[0]?.meanLogprob ?? [])),
    lastMeanLogprob: mean(results.flatMap(({ rows: own }) => own.at(-1)?.meanLogprob ?? [])),
    seconds: sum((row) => row.seconds),
  };
}

function share(parts: readonly { solved: number; rollouts: number }[]): Share {
  const solved = parts.reduce((total, part) => total + part.solved, 0);
  const rollouts = parts.reduce((total, part) => total + part.rollouts, 0);
  return { solved, rollouts, ...interval95(solved, rollouts) };
}

function pooledHabits(parts: readonly HeldOut[]): Record<Habit, number> {
  const counts = { calc: 0, think: 0, guess: 0 };
  for (const { habits } of parts) for (const habit of HABITS) counts[habit] += habits[habit];
  return counts;
}

const mean = (values: readonly number[]): number | null =>
  values.length === 0 ? null : values.reduce((total, value) => total + value, 0) / values.length;
