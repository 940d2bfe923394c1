/** What a run of the loop is asked to do, and what must be the same for a run to be resumed. */

/** tito: trains on materialized rows · transcript: on the harness's messages · careful: on its messages with reasoning and arguments kept. */
export const ARMS = ["tito", "transcript", "careful"] as const;
export type ArmName = (typeof ARMS)[number];

export const HARNESSES = ["both", "pi", "tool-loop"] as const;
export type HarnessName = (typeof HARNESSES)[number];

/** ours: the trainer in scripts/rl/trainer · torch: examples/python/grpo_step.py. */
export const TRAINERS = ["ours", "torch"] as const;
type TrainerName = (typeof TRAINERS)[number];

/** Everything that decides what an arm does, besides the code and the day (the harness puts the date into its prompts). */
export interface LoopOptions {
  readonly seed: number;
  readonly iterations: number;
  readonly tasks: number;
  readonly rolloutsPerTask: number;
  readonly learningRate: number;
  readonly clip: number;
  /** Iterations by which the sampling weights lag behind the trained ones. */
  readonly stale: number;
  /** Oldest weights whose tokens train, in versions. */
  readonly maxVersionAge: number;
  readonly harness: HarnessName;
  readonly trainer: TrainerName;
  /** Held-out tasks that are played with the first and the last weights. */
  readonly heldOut: number;
}

/** Names of the options, as flags, in which two runs differ. */
export function differingOptions(a: LoopOptions, b: LoopOptions): string[] {
  const names = Object.keys(a) as (keyof LoopOptions)[];
  return names
    .filter((name) => name !== "iterations" && a[name] !== b[name])
    .map((name) => `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)} ${a[name]} (now ${b[name]})`);
}
