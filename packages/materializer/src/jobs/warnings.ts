/** What a materialization has to tell without stopping: conflicts, rules that name nothing, rows without effect. Pure. */

import { RUN_NAMES } from "../credit/reward.js";
import type { RunSource, SideFiles } from "../find/run-source.js";
import { namesIn } from "../recipe/expression.js";
import type { Policy } from "../recipe/policy.js";
import type { RunHead } from "../write/rollout-run.js";

const LISTED_MAX = 20;
const SHOWN_CHARS_MAX = 200;

/** `sources` stand in the order of `heads`. */
export function warningsOf(
  heads: readonly RunHead[],
  sources: readonly RunSource[],
  files: SideFiles,
  policy: Policy,
): string[] {
  const unknown = unknownNames(heads, policy);
  return [
    ...captureWarnings(heads),
    ...unknown.map((each) => each.text),
    ...rewardWarnings(heads, { explained: unknown.some((each) => each.where === "reward") }),
    ...notValidWarnings(heads, sources),
    ...sources.flatMap((source) => source.warnings.map((warning) => `run ${source.run_id}: ${warning}`)),
    ...heads.flatMap((head) => head.conflicts.map((conflict) => `run ${head.run_id}: ${conflict}`)),
    ...sideFileWarnings(heads, files),
  ];
}

/** What is missing or damaged, run by run: such a run is written and by default does not train. */
function captureWarnings(heads: readonly RunHead[]): string[] {
  const incomplete = heads.filter((head) => head.termination === "capture_incomplete");
  const lines = incomplete
    .slice(0, LISTED_MAX)
    .map((head) => `run ${head.run_id}: capture incomplete: ${head.termination_detail}`);
  const more = incomplete.length - lines.length;
  return more > 0 ? [...lines, `${more} more runs with an incomplete capture`] : lines;
}

/** Rewards that the runner or the table does not let count, run by run, also where another reason excludes the run already. */
function notValidWarnings(heads: readonly RunHead[], sources: readonly RunSource[]): string[] {
  const named = sources.flatMap(({ reward_not_valid }, i) =>
    reward_not_valid === null ? [] : [`run ${heads[i]!.run_id}: its reward does not count: ${reward_not_valid}`],
  );
  const more = named.length - LISTED_MAX;
  return more > 0 ? [...named.slice(0, LISTED_MAX), `${more} more runs whose reward does not count`] : named;
}

/** Names in the policy's expressions that are null for every run: a typing error, or a rule that can never hold. */
function unknownNames(heads: readonly RunHead[], policy: Policy): { where: string; text: string }[] {
  const scores = new Set(heads.flatMap((head) => Object.keys(head.scores)));
  const metadata = new Set(heads.flatMap((head) => Object.keys(head.metadata)));
  const expressions: [string, string][] = [
    ["reward", policy.reward],
    ["credit.group", policy.credit.group],
    ...policy.exclude.rules.map(({ reason, when }): [string, string] => [`exclude.rules: ${reason}`, when]),
  ];
  const known = (name: string) => {
    if (name.startsWith("run.")) return RUN_NAMES.has(name.slice(4));
    return name.startsWith("metadata.") ? metadata.has(name.slice(9)) : scores.has(name.replace(/^scores\./, ""));
  };
  // Without any score there is one thing to say, not one a rule.
  if (heads.length === 0 || scores.size === 0) return [];
  return expressions.flatMap(([where, source]) =>
    namesIn(source, where)
      .filter((name) => !known(name))
      .map((name) => ({ where, text: `policy: ${where}: ${name} is null for every run; ${there(scores)}` })),
  );
}

function there(scores: ReadonlySet<string>): string {
  const some = [...scores].sort().slice(0, 8);
  return `scores are ${some.join(", ")}${scores.size > some.length ? ", …" : ""}`;
}

function rewardWarnings(heads: readonly RunHead[], given: { explained: boolean }): string[] {
  const without = heads.filter((head) => head.reward === null && head.turn_rewards === null);
  if (
    heads.length > 0 &&
    without.length === heads.length &&
    heads.every((head) => Object.keys(head.scores).length === 0)
  )
    return [
      "no run has a reward: every weight is 0; give rewards with --rewards, or a result.json, reward.json or reward.txt a trial",
    ];
  const scored = without.filter((head) => Object.keys(head.scores).length > 0);
  if (given.explained || scored.length === 0) return [];
  const first = scored[0]!;
  const shown = JSON.stringify(first.scores).slice(0, SHOWN_CHARS_MAX);
  const runs = scored.length === 1 ? "1 run has scores" : `${scored.length} runs have scores`;
  return [`${runs} of which the rule "${first.reward_rule}" makes no number, first ${first.run_id}: ${shown}`];
}

function sideFileWarnings(heads: readonly RunHead[], files: SideFiles): string[] {
  const warnings: string[] = [];
  for (const index of [files.rewards, files.exclusions, files.turnRewards]) {
    warnings.push(...(index?.warnings() ?? []));
    const unmatched = index?.unmatched() ?? [];
    const [first] = heads;
    if (unmatched.length === 0 || !first) continue;
    const names = unmatched.length === 1 ? "name names" : "names name";
    const example = `the first run has run_id ${first.run_id} and trial_id ${first.trial_id}`;
    warnings.push(`${index!.file}: ${unmatched.length} ${names} no run, first ${unmatched[0]}; ${example}`);
  }
  return warnings;
}
