/** Recomputes rewards, advantages and weights of an output from the scores and rules that are stored in it. Pure. */
import { assignCredit } from "../credit/credit.js";
import { rewardOf, runNames } from "../credit/reward.js";
import { isSuperseded } from "../find/lives.js";
import type { Policy } from "../recipe/policy.js";
import type { ReadRun } from "./read-output.js";

/** What of a run its credit follows from, and the credit that it has. */
export interface AuditedCredit {
  run: ReadRun;
  where: string;
  samples: { advantage: number | readonly number[] | null; turns: number[]; trajectory_id: string }[];
}

const TOLERANCE = 1e-9;

/** Reports every reward that is not what the rule makes of the scores, and every advantage and weight that does not follow. */
export function auditCredit(audited: readonly AuditedCredit[], policy: Policy, problem: (text: string) => void): void {
  for (const each of audited) auditReward(each, policy, problem);
  const members = audited.map(({ run }, i) => ({
    key: String(i),
    group: run.group_id,
    excluded: run.excluded !== null,
    superseded: isSuperseded(run.excluded),
    rewards: run.turn_rewards ?? (run.reward === null ? null : [run.reward]),
    trained_tokens: run.coverage.trained_tokens,
  }));
  const credits = assignCredit(members, policy.credit.rule, policy.credit.weight);
  for (const [i, each] of audited.entries()) {
    const { weight, advantages } = credits.get(String(i))!;
    if (!close(weight, each.run.weight)) problem(`${each.where}: weighs ${each.run.weight}, the rule gives ${weight}`);
    auditAdvantages(each, advantages, problem);
  }
}

function auditReward({ run, where }: AuditedCredit, policy: Policy, problem: (text: string) => void): void {
  if (run.reward_rule !== policy.reward)
    problem(`${where}: reward rule ${run.reward_rule}, the policy says ${policy.reward}`);
  if (run.credit_rule !== policy.credit.rule)
    problem(`${where}: credit rule ${run.credit_rule}, the policy says ${policy.credit.rule}`);
  // The derived group and the number of samples are not facts of the row that a reward should rest on; all others are there.
  const { run_id, trial_id, group_id, attempt, termination, turns, coverage } = run;
  const names = { run_id, trial_id, group_id, attempt, termination, turns, coverage, task: run.task.id, samples: 0 };
  const facts = {
    scores: new Map(Object.entries(run.scores)),
    metadata: new Map(Object.entries(run.metadata)),
    run: runNames(names),
    evidence: run.evidence.map((file) => file.path),
  };
  if (/\brun\.(samples|group_id)\b/.test(run.reward_rule)) return;
  const reward = rewardOf(facts, run.reward_rule);
  if (reward !== run.reward) problem(`${where}: reward ${run.reward}, its rule makes ${reward} of its scores`);
}

function auditAdvantages(
  each: AuditedCredit,
  advantages: readonly number[] | null,
  problem: (text: string) => void,
): void {
  for (const [i, sample] of each.samples.entries()) {
    const { advantage } = sample;
    const where = `${each.where} sample ${i}`;
    if (advantages === null || advantage === null) {
      if ((advantages === null) !== (advantage === null))
        problem(`${where}: advantage ${advantage}, the rule gives ${advantages?.[0] ?? null}`);
    } else if (typeof advantage === "object") {
      // Turn numbers count within a trajectory; with several of them only the values can be compared.
      const known = each.run.trajectory_ids.length === 1;
      const wrong = advantage.findIndex((value, at) =>
        known ? !close(value, advantages[sample.turns[at]!]!) : !advantages.some((other) => close(other, value)),
      );
      if (wrong >= 0)
        problem(`${where}: advantage ${advantage[wrong]} of action ${wrong} does not follow from the turn rewards`);
    } else if (!close(advantage, advantages[0]!))
      problem(`${where}: advantage ${advantage}, the rule gives ${advantages[0]}`);
  }
}

function close(a: number, b: number): boolean {
  return Math.abs(a - b) <= TOLERANCE * Math.max(1, Math.abs(a), Math.abs(b));
}
