/** What the rooms after this one get: runs with their trajectories, scores and ids, before anything is read of them. Types only. */
import type { RecordedIdentity } from "../read/evidence.js";
import type { Value } from "../recipe/expression.js";
import type { TrialFacts } from "./harbor.js";
import type { RowIndex } from "./side-files.js";

/** When a trajectory was recorded, in milliseconds since the epoch. */
export interface Lived {
  first_ms: number;
  last_ms: number;
}

/** A run before its trajectories are read. */
export interface RunSource {
  run_id: string;
  trial_id: string;
  /** Recorded, mapped or derived group. */
  group_id: string;
  attempt: number;
  trial_dir: string;
  facts: TrialFacts | null;
  trajectories: { dir: string; trajectory_id: string }[];
  scores: [string, Value][];
  scores_source: string | null;
  /** Reward of single turns, when a turn-reward file names this run. */
  turn_rewards: TurnReward[] | null;
  metadata: [string, string][];
  /** `superseded_by_attempt_N`, `superseded_by_later_run`, or the reason of the exclusions file. */
  excluded: string | null;
  /** Why the scores are no reward of the policy, in words; null when they count. */
  reward_not_valid: string | null;
  conflicts: string[];
  /** What a reader of the output should know, and what is not part of the run. */
  warnings: string[];
}

/** `trajectory_id` null: the row named the run, not one of its trajectories. */
export interface TurnReward {
  trajectory_id: string | null;
  turn: number;
  reward: number;
}

/** A trajectory directory with the ids that it carries. */
export interface Identified {
  dir: string;
  trajectory_id: string;
  identity: RecordedIdentity;
  /** When it was recorded; reads the trajectory, so that it is asked only where several are of one trial. */
  lived: () => Lived | null;
}

export interface SideFiles {
  rewards: RowIndex | null;
  exclusions: RowIndex | null;
  turnRewards: RowIndex | null;
}
