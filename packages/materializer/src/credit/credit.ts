/** Stage "credit": from rewards to advantages and weights. Formulas: docs/samples.md#credit. Pure. */

export type CreditRule = "none" | "grpo" | "grpo-no-std" | "rloo" | "batch-baseline";

/** A rollout as credit sees it. `rewards`: one number, or one per turn; null while unknown. */
export interface CreditMember {
  key: string;
  group: string;
  excluded: boolean;
  /** An older attempt: not a member that the group lost. */
  superseded?: boolean;
  /** Rewards by turn, in turn order, when a turn-reward file names this run; else the run's single reward. */
  rewards: readonly number[] | null;
  trained_tokens: number;
}

/** What is known about a group once its members are. */
interface GroupStats {
  group_id: string;
  /** All rollouts of the group, also excluded ones and those without a reward; superseded attempts are not among them. */
  size: number;
  /** Rollouts that the statistics are over. */
  counted: number;
  mean: number | null;
  std: number | null;
  /** `single_member`, `zero_std`, `lost_members`: excluded or unrewarded rollouts are missing from the statistics. */
  flags: string[];
}

export interface Credit {
  /** One advantage per entry of `rewards`; null when the rollout must not train or no rule applies. */
  advantages: readonly number[] | null;
  /** Sum of the weights of the rollout's samples. */
  weight: number;
  group: GroupStats;
}

const STD_EPSILON = 1e-6;

/** Credits of all rollouts of an output, by key. Members are taken in the given order, so sums do not depend on anything else. */
export function assignCredit(
  members: readonly CreditMember[],
  rule: CreditRule,
  weight: "run" | "token",
): Map<string, Credit> {
  const groups = new Map<string, CreditMember[]>();
  for (const member of members) {
    const list = groups.get(member.group);
    if (list) list.push(member);
    else groups.set(member.group, [member]);
  }
  const credits = new Map<string, Credit>();
  for (const [group_id, all] of groups) {
    const counted = all.filter(counts);
    const size = all.filter((member) => member.superseded !== true).length;
    const group = groupStats(group_id, size, counted);
    for (const member of all) {
      credits.set(member.key, { advantages: groupAdvantages(member, counted, group, rule), weight: 0, group });
    }
  }
  if (rule === "batch-baseline") divideByBatchStd(credits);
  assignWeights(members, credits, weight);
  return credits;
}

/** Takes part in group statistics. */
function counts(member: CreditMember): boolean {
  return !member.excluded && member.rewards !== null && member.rewards.length > 0;
}

function groupStats(group_id: string, size: number, counted: CreditMember[]): GroupStats {
  const values = counted.flatMap((member) => member.rewards!);
  const flags: string[] = [];
  const std = values.length > 1 ? sampleStd(values) : null;
  if (counted.length === 1) flags.push("single_member");
  if (counted.length > 1 && (std === null || std === 0)) flags.push("zero_std");
  if (counted.length < size) flags.push("lost_members");
  return {
    group_id,
    size,
    counted: counted.length,
    mean: values.length > 0 ? mean(values) : null,
    std,
    flags,
  };
}

function groupAdvantages(
  member: CreditMember,
  counted: CreditMember[],
  group: GroupStats,
  rule: CreditRule,
): readonly number[] | null {
  if (rule === "none" || !counts(member)) return null;
  const rewards = member.rewards!;
  if (counted.length < 2 || group.std === null || group.std === 0) return rewards.map(() => 0);
  switch (rule) {
    case "grpo":
      return rewards.map((reward) => (reward - group.mean!) / (group.std! + STD_EPSILON));
    case "grpo-no-std":
    case "batch-baseline":
      return rewards.map((reward) => reward - group.mean!);
    case "rloo": {
      const others = mean(counted.filter((other) => other !== member).flatMap((other) => other.rewards!));
      return rewards.map((reward) => reward - others);
    }
  }
}

/** batch-baseline: the centred rewards over their standard deviation in the whole output. */
function divideByBatchStd(credits: Map<string, Credit>): void {
  const all = [...credits.values()].flatMap((credit) => credit.advantages ?? []);
  const std = all.length > 1 ? sampleStd(all) : 0;
  for (const [key, credit] of credits) {
    const advantages = credit.advantages?.map((value) => (std === 0 ? 0 : value / std)) ?? null;
    credits.set(key, { ...credit, advantages });
  }
}

/** `run`: 1 each. `token`: trained tokens over the mean of the rollouts that have a weight, so that every token counts the same. */
function assignWeights(members: readonly CreditMember[], credits: Map<string, Credit>, weight: "run" | "token"): void {
  const weighted = members.filter((member) => counts(member) && member.trained_tokens > 0);
  const meanTrained = weighted.length > 0 ? mean(weighted.map((member) => member.trained_tokens)) : 1;
  for (const member of weighted) {
    const value = weight === "run" ? 1 : member.trained_tokens / meanTrained;
    credits.set(member.key, { ...credits.get(member.key)!, weight: value });
  }
}

/** Weight of a sample: its share of the rollout's trained tokens. */
export function sampleWeight(runWeight: number, trainedInSample: number, trainedInRun: number): number {
  return trainedInRun === 0 ? 0 : (runWeight * trainedInSample) / trainedInRun;
}

function mean(values: readonly number[]): number {
  let sum = 0;
  for (const value of values) sum += value;
  return sum / values.length;
}

/** Standard deviation with n − 1; exactly 0 when all values are equal. */
export function sampleStd(values: readonly number[]): number {
  if (values.every((value) => value === values[0])) return 0;
  const centre = mean(values);
  let sum = 0;
  for (const value of values) sum += (value - centre) ** 2;
  return Math.sqrt(sum / (values.length - 1));
}
