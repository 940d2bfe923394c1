/**
 * What a trial runner left beside the trajectories: Harbor's `result.json`, or a plain `reward.json` / `reward.txt`.
 * The fields relied on are listed in docs/samples.md#trials.
 */
import { z } from "zod";
import type { Value } from "../recipe/expression.js";
import { parseJsonText } from "../recipe/json-text.js";
import { harborReward, rewardFields } from "./harbor-reward.js";
import type { TrialFailure } from "./termination.js";

/** A trial directory, read. */
export interface TrialFacts {
  kind: "harbor" | "plain";
  trial_name: string | null;
  task: { id: string | null; source: string | null };
  environment: { kind: string | null; image: string | null };
  scores: ReadonlyMap<string, Value>;
  /** File of the scores relative to the trial directory, null when there are none. */
  scores_source: string | null;
  failure: TrialFailure | null;
  /** Why the runner's scores are no reward of the policy, in words; null when they count. */
  reward_not_valid: string | null;
  /** What the runner counts and a reader should know of, in words. */
  doubts: readonly string[];
  /** Steps of a multi-step trial, 0 for any other. */
  steps: number;
  /** Files that are there and cannot be read, in words. */
  problems: readonly string[];
}

/** Only what is used; the rest of a result may have any shape, so that newer versions stay readable. */
const harborResult = z.looseObject({
  task_name: z.string(),
  trial_name: z.string(),
  source: z.string().nullish(),
  ...rewardFields,
  config: z
    .looseObject({
      environment: z.looseObject({ type: z.string().nullish(), docker_image: z.string().nullish() }).nullish(),
    })
    .nullish(),
});

/**
 * Reads the text of a `result.json`: a trial's facts, or a text that says why it cannot be read.
 * Null when it is not a trial's (Harbor writes one for the whole job too).
 */
export function parseHarborResult(text: string): TrialFacts | string | null {
  const value = parseJson(text);
  if (value === undefined) return "result.json is not JSON";
  const parsed = harborResult.safeParse(value);
  if (!parsed.success) {
    const named = z.looseObject({ task_name: z.unknown(), trial_name: z.string() }).safeParse(value).success;
    const issue = parsed.error.issues[0]!;
    return named ? `result.json: ${issue.path.join(".")}: ${issue.message}` : null;
  }
  const result = parsed.data;
  const rewards = result.verifier_result?.rewards;
  const { not_valid, failure, doubts, steps } = harborReward(result, result.config);
  return {
    kind: "harbor",
    trial_name: result.trial_name,
    task: { id: result.task_name, source: result.source ?? null },
    environment: {
      kind: result.config?.environment?.type ?? null,
      image: result.config?.environment?.docker_image ?? null,
    },
    scores: scoresOf(rewards ?? {}),
    scores_source: rewards ? "result.json" : null,
    failure,
    reward_not_valid: not_valid,
    doubts,
    steps,
    problems: [],
  };
}

/**
 * Scores of a `reward.json`: a flat object of numbers, booleans, texts and nulls, or one number, which is named `reward`.
 * Null when the text is neither, or the object holds none of these.
 */
export function parseRewardJson(text: string): ReadonlyMap<string, Value> | null {
  const value = parseJson(text);
  if (typeof value === "number" || typeof value === "boolean") return new Map([["reward", value]]);
  if (typeof value !== "object" || value === null || Array.isArray(value)) return null;
  const scores = scoresOf(value);
  return scores.size > 0 ? scores : null;
}

/** JavaScript would also read 0x10 and an empty text as numbers. */
const DECIMAL = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;

/** Scores of a `reward.txt`: one number. */
export function parseRewardText(text: string): ReadonlyMap<string, Value> | null {
  const trimmed = text.trim();
  const value = DECIMAL.test(trimmed) ? Number(trimmed) : Number.NaN;
  return Number.isFinite(value) ? new Map([["reward", value]]) : null;
}

/** Values that an expression can use; nested ones are left out, they stay in the evidence. */
function scoresOf(values: object): ReadonlyMap<string, Value> {
  const scores = new Map<string, Value>();
  for (const [name, value] of Object.entries(values)) {
    if (value === null || typeof value === "string" || typeof value === "boolean") scores.set(name, value);
    else if (typeof value === "number") scores.set(name, Number.isFinite(value) ? value : null);
  }
  return scores;
}

function parseJson(text: string): unknown {
  try {
    return parseJsonText(text);
  } catch {
    return undefined;
  }
}
