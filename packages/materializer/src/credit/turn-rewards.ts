/** Rewards of a run's turns: the file's, else the run's own. Pure. */

import type { RunSource } from "../find/run-source.js";
import type { TrajectoryEvidence } from "../read/evidence.js";

export interface RunRewards {
  /** One reward, or with turn rewards one per turn; null while unknown. */
  rewards: number[] | null;
  /** Rows that have no effect, and turns that keep the run from having rewards, in words. */
  problems: string[];
}

type Turns = Pick<TrajectoryEvidence, "trajectory_id" | "turns">;

export function rewardsOf(
  source: Pick<RunSource, "turn_rewards">,
  evidence: readonly Turns[],
  reward: number | null,
): RunRewards {
  const { turn_rewards } = source;
  if (turn_rewards === null) return { rewards: reward === null ? null : [reward], problems: [] };
  const problems = turn_rewards.flatMap(({ trajectory_id, turn }) => {
    const named = evidence.filter((each) => trajectory_id === null || each.trajectory_id === trajectory_id);
    const turns = Math.max(0, ...named.map((each) => each.turns.length));
    return turn < turns ? [] : [`a turn reward names turn ${turn}; there are ${turns}, counted from 0`];
  });
  const given = new Map(turn_rewards.map((each) => [`${each.trajectory_id ?? ""}/${each.turn}`, each.reward]));
  const all = evidence.flatMap((each) =>
    each.turns.map(({ turn }) => given.get(`${each.trajectory_id}/${turn}`) ?? given.get(`/${turn}`) ?? reward),
  );
  const rewards = all.filter((value) => value !== null);
  if (rewards.length === all.length) return { rewards, problems };
  const unknown = all.length - rewards.length;
  const what = `${unknown} of ${all.length} turns have no turn reward, and the run has no reward that they could have`;
  return { rewards: null, problems: [...problems, what] };
}
