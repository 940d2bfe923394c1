/** What an iteration was like: one line of the loop's own record. */
import type { Habit } from "../habits/habit.js";

export interface IterationRow {
  /** From 0. */
  readonly iteration: number;
  readonly rollouts: number;
  readonly solved: number;
  readonly habits: Readonly<Record<Habit, number>>;
  /** Weight versions by the spans of the recorded answers. */
  readonly sampledBy: readonly string[];
  /** Tokens that the engine sampled. */
  readonly tokensSampled: number;
  readonly tokensTrained: number;
  /** Sampled tokens that weights too old for `--max-version-age` sampled. */
  readonly tokensStale: number;
  /** Trained tokens that the engine never sampled behind the prefix that they are trained behind. */
  readonly tokensNeverSampled: number;
  /** Largest and mean |log π of the trainer before its step − log π that the engine sampled with|, over the trained tokens that it did sample there. */
  readonly recordedOffMax: number | null;
  readonly recordedOffMean: number | null;
  /** Largest |ratio − 1| as the trainer itself sees it. */
  readonly ratioOffMax: number;
  readonly clippedTokens: number;
  readonly meanLogprob: number | null;
  readonly loss: number | null;
  readonly gradientNorm: number;
  readonly seconds: number;
}

/** Held-out tasks played with one set of weights. */
export interface HeldOut {
  readonly rollouts: number;
  readonly solved: number;
  readonly habits: Readonly<Record<Habit, number>>;
}
