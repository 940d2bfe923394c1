/** Exclusion, rewards, groups, advantages and weights in the plainest form, from the contract alone. */
import type { Policy } from "../src/recipe/policy.js";
import type { OracleRun } from "./oracle.js";

const mean = (values: number[]) => values.reduce((a, b) => a + b, 0) / values.length;
const std = (values: number[]) =>
  Math.sqrt(values.reduce((sum, each) => sum + (each - mean(values)) ** 2, 0) / (values.length - 1));
const equal = (values: number[]) => values.every((each) => each === values[0]);

export function oracleExcluded(run: OracleRun, all: readonly OracleRun[]): string | null {
  const attempts = all.filter((each) => each.run === run.run && each.trial === run.trial).map((each) => each.attempt);
  if (run.attempt < Math.max(...attempts)) return `superseded_by_attempt_${Math.max(...attempts)}`;
  return run.verdict;
}

/** One reward, or one a turn in the order of trajectories; null while one is unknown. */
function oracleRewards(run: OracleRun): number[] | null {
  const { turnRewards, reward } = run;
  if (turnRewards === null) return reward === null ? null : [reward];
  const all = run.trajectories.flatMap(({ id, calls }) => calls.map((_, i) => turnRewards.get(`${id}/${i}`) ?? reward));
  return all.includes(null) ? null : (all as number[]);
}

/** Advantages and weight of every run, given how many of its tokens train. */
export function oracleCredit(runs: readonly OracleRun[], trained: readonly number[], policy: Policy["credit"]) {
  const rewards = runs.map(oracleRewards);
  const counted = runs.map((run, i) => oracleExcluded(run, runs) === null && (rewards[i]?.length ?? 0) > 0);
  const inGroup = (i: number) => runs.map((_, j) => j).filter((j) => counted[j] && runs[j]!.group === runs[i]!.group);
  const centred = runs.map((_, i): number[] | null => {
    if (policy.rule === "none" || !counted[i]) return null;
    const group = inGroup(i);
    const values = group.flatMap((j) => rewards[j]!);
    if (group.length < 2 || equal(values)) return rewards[i]!.map(() => 0);
    const others = mean(group.filter((j) => j !== i).flatMap((j) => rewards[j]!));
    return rewards[i]!.map((reward) => {
      if (policy.rule === "rloo") return reward - others;
      return (reward - mean(values)) / (policy.rule === "grpo" ? std(values) + 1e-6 : 1);
    });
  });
  const all = centred.flatMap((each) => each ?? []);
  const scale =
    policy.rule === "batch-baseline" ? (all.length < 2 || equal(all) ? Number.POSITIVE_INFINITY : std(all)) : 1;
  const weighted = runs.map((_, i) => i).filter((i) => counted[i] && trained[i]! > 0);
  const average = mean(weighted.map((i) => trained[i]!));
  return runs.map((_, i) => ({
    advantages: centred[i]?.map((each) => each / scale) ?? null,
    weight: !weighted.includes(i) ? 0 : policy.weight === "run" ? 1 : trained[i]! / average,
    group: {
      size: runs.filter((run) => run.group === runs[i]!.group && !oracleExcluded(run, runs)?.startsWith("superseded"))
        .length,
      counted: inGroup(i).length,
    },
  }));
}

/** First fit: which of these lengths come to lie together. */
export function oraclePack(lengths: readonly number[], room: number): number[][] {
  const rows: number[][] = [];
  lengths.forEach((length, i) => {
    const row = rows.find((each) => each.reduce((sum, j) => sum + lengths[j]!, 0) + length <= room);
    if (row) row.push(i);
    else rows.push([i]);
  });
  return rows;
}
