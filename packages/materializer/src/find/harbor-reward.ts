/**
 * Whether the reward in a Harbor `result.json` counts, by what Harbor (0.26) says and else by the table of `runner-exceptions.ts`. A reward is
 * valid for Harbor when the trial has rewards and every exception of the trial and of its steps has a policy that leaves it valid. Pure.
 */
import { z } from "zod";
import { meaningOf } from "./runner-exceptions.js";
import type { TrialFailure } from "./termination.js";

/** A part of Harbor's policy for an exception; an override holds only what it changes. */
const policy = z.looseObject({ has_valid_reward: z.boolean().nullish() }).nullish();
const timing = z.looseObject({ started_at: z.string().nullish(), finished_at: z.string().nullish() }).nullish();

const attempted = {
  verifier_result: z.looseObject({ rewards: z.record(z.string(), z.unknown()).nullish() }).nullish(),
  exception_info: z
    .looseObject({
      exception_type: z.string(),
      exception_message: z.string().nullish(),
      policy,
      policy_override: policy,
    })
    .nullish(),
  agent_execution: timing,
  verifier: timing,
};

/** The fields of a result that speak of rewards and failures; every other may have any shape. */
export const rewardFields = {
  ...attempted,
  reward_valid: z.boolean().nullish(),
  step_results: z
    .array(
      z.looseObject({ step_name: z.string().nullish(), reward_valid: z.boolean().nullish(), ...attempted }).nullish(),
    )
    .nullish(),
};

const overrides = z.looseObject({ override_error_policy: z.record(z.string(), policy).nullish() });
type RewardFields = z.infer<z.ZodObject<typeof rewardFields>>;
type Attempted = Omit<RewardFields, "reward_valid" | "step_results">;

export interface HarborReward {
  /** Why a reward of this trial does not count, in words; null when it counts. */
  not_valid: string | null;
  /** What decides how the trial ended: the trial's own exception, else the first of a step that takes the reward's validity, else the first. */
  failure: TrialFailure | null;
  /** Exceptions that look like a failing machine and whose reward Harbor calls valid, in words. */
  doubts: string[];
  /** Steps of a multi-step trial that left a result. */
  steps: number;
}

/** `config` is the result's, read for `override_error_policy` where an exception has no policy beside it. */
export function harborReward(result: RewardFields, config: unknown): HarborReward {
  const steps = (result.step_results ?? []).filter((step) => step != null);
  const rewardValid = result.reward_valid ?? null;
  const failures = [
    ...failureOf(result, ""),
    ...steps.flatMap((step, number) => failureOf(step, ` in step ${step.step_name ?? number}`)),
  ];
  const overridden = overrides.safeParse(config).data?.override_error_policy ?? {};
  const judged = failures.map((one) => judge(one, rewardValid, overridden));
  const invalid = judged.find((one) => !one.counts);
  const rewarded = Object.keys(result.verifier_result?.rewards ?? {}).length > 0;
  const own = judged.find((one) => one.where === "");
  const decisive = own ?? invalid ?? judged[0];
  return {
    not_valid: notValid(rewardValid, invalid) ?? notValidStep(steps),
    failure: decisive === undefined ? null : { ...decisive.failure, reward_counts: rewarded && decisive.word === true },
    doubts: judged
      .filter((one) => rewarded && one.counts && one.doubtful)
      .map(({ failure, where }) => `Harbor counts the reward although the trial met ${failure.type}${where}`),
    steps: steps.length,
  };
}

interface Failure {
  failure: Omit<TrialFailure, "reward_counts">;
  where: string;
  /** Of the policy beside the exception, and of the override beside it. */
  said: boolean | null;
  override: boolean | null;
}

function failureOf(attempt: Attempted, where: string): Failure[] {
  const { exception_info: exception, verifier_result, agent_execution, verifier } = attempt;
  if (!exception) return [];
  const rewarded = verifier_result?.rewards != null;
  const failure = {
    type: exception.exception_type,
    message: `${exception.exception_message ?? ""}${where === "" ? "" : ` (${where.trim()})`}`,
    agent_started: typeof agent_execution?.started_at === "string",
    verifying: typeof verifier?.started_at === "string" && !rewarded,
  };
  const said = exception.policy?.has_valid_reward ?? null;
  return [{ failure, where, said, override: exception.policy_override?.has_valid_reward ?? null }];
}

interface Judged extends Failure {
  counts: boolean;
  /** What Harbor says, null when it says nothing. */
  word: boolean | null;
  doubtful: boolean;
}

/** An override is the last word: Harbor's policy beside the exception holds it already; an older version leaves only the configuration, or nothing. */
function judge(one: Failure, rewardValid: boolean | null, overridden: Record<string, z.infer<typeof policy>>): Judged {
  const override = one.override ?? (one.said === null ? overridden[one.failure.type]?.has_valid_reward : null) ?? null;
  const table = meaningOf(one.failure.type, one.failure).counts;
  const word = override ?? one.said ?? (rewardValid === true ? true : null);
  return { ...one, counts: word ?? table, word, doubtful: !table && override === null };
}

function notValidStep(
  steps: readonly { step_name?: string | null | undefined; reward_valid?: boolean | null | undefined }[],
): string | null {
  const number = steps.findIndex((step) => step.reward_valid === false);
  return number < 0 ? null : `Harbor calls step ${steps[number]!.step_name ?? number} not valid`;
}

function notValid(rewardValid: boolean | null, invalid: Judged | undefined): string | null {
  if (invalid === undefined) return rewardValid === false ? "Harbor calls it not valid and names no exception" : null;
  const harbor = rewardValid === false || invalid.word === false;
  return `${invalid.failure.type}${invalid.where} (${harbor ? "Harbor calls it not valid" : "by the table"})`;
}
