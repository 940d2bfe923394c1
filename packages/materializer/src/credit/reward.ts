/** Stage "reward": raw scores → reward, and the rules that exclude a run. Pure. */
import type { Coverage } from "../build/coverage.js";
import { compileExpression, type Scope, truthy, type Value } from "../recipe/expression.js";
import { matchesGlob } from "../recipe/glob.js";
import type { Policy } from "../recipe/policy.js";
import type { Termination } from "../recipe/reasons.js";

/** What reward, exclusion and group expressions can see. */
export interface RunFacts {
  scores: ReadonlyMap<string, Value>;
  metadata: ReadonlyMap<string, string>;
  /** Names under `run.`. */
  run: ReadonlyMap<string, Value>;
  /** Paths of the trial's evidence, for `exists("…")`. */
  evidence: readonly string[];
}

export interface Verdict {
  reward: number | null;
  excluded: string | null;
}

/** What expressions know under `run.`. */
export const RUN_NAMES: ReadonlySet<string> = new Set([
  ...["run_id", "trial_id", "group_id", "task", "attempt", "termination", "turns", "samples"],
  ...["captured_tokens", "eligible_tokens", "trained_tokens"],
]);

/** The values of {@link RUN_NAMES} for one run. */
export function runNames(facts: {
  run_id: string;
  trial_id: string;
  group_id: string;
  task: string | null;
  attempt: number;
  termination: Termination;
  turns: number;
  samples: number;
  coverage: Coverage;
}): ReadonlyMap<string, Value> {
  const { coverage, ...rest } = facts;
  return new Map<string, Value>([
    ...(Object.entries(rest) as [string, Value][]),
    ["captured_tokens", coverage.captured_tokens],
    ["eligible_tokens", coverage.eligible_tokens],
    ["trained_tokens", coverage.trained_tokens],
  ]);
}

function scopeOf(facts: RunFacts): Scope {
  return {
    lookup(name) {
      if (name.startsWith("run.")) return facts.run.get(name.slice(4));
      if (name.startsWith("metadata.")) return facts.metadata.get(name.slice(9));
      return facts.scores.get(name.startsWith("scores.") ? name.slice(7) : name);
    },
    score: (name) => facts.scores.get(name) ?? null,
    exists: (pattern) => facts.evidence.some((path) => matchesGlob(path, pattern)),
  };
}

/**
 * The reward is the rule's finite number (true = 1, false = 0), else null: an unknown reward is never a zero.
 * Exclusions in this order: a superseded attempt or a verdict of the exclusions file, the termination, a reward that does not count, the
 * first rule that holds.
 */
export function judge(
  facts: RunFacts,
  policy: Pick<Policy, "reward" | "exclude">,
  given: { excluded: string | null; termination: Termination; reward_not_valid: boolean },
): Verdict {
  const scope = scopeOf(facts);
  return {
    reward: rewardOf(facts, policy.reward),
    excluded:
      given.excluded ??
      byTermination(policy, given.termination) ??
      (given.reward_not_valid ? "reward_not_valid" : null) ??
      byRule(policy, scope),
  };
}

/** The number that a reward rule makes of a run's facts. */
export function rewardOf(facts: RunFacts, rule: string): number | null {
  const value = compileExpression(rule, "reward")(scopeOf(facts));
  const number = typeof value === "boolean" ? Number(value) : value;
  return typeof number === "number" && Number.isFinite(number) ? number : null;
}

function byTermination(policy: Pick<Policy, "exclude">, termination: Termination): string | null {
  return policy.exclude.terminations.includes(termination) ? termination : null;
}

function byRule(policy: Pick<Policy, "exclude">, scope: Scope): string | null {
  for (const rule of policy.exclude.rules) {
    if (truthy(compileExpression(rule.when, `exclude.rules: ${rule.reason}`)(scope))) return rule.reason;
  }
  return null;
}

/** Group of a run under `credit.group`; a rule that gives nothing leaves the run in a group of its own. */
export function groupOf(facts: RunFacts, rule: string, fallback: string): string {
  const value = compileExpression(rule, "credit.group")(scopeOf(facts));
  return value === null || value === "" ? fallback : String(value);
}
