/** Adds up what a materialization saw, for the manifest and the report. Pure. */

import { addCoverage, assertCoverage, emptyCoverage } from "../build/coverage.js";
import type { ModelFacts } from "../read/model-facts.js";
import { addToolUse, NO_TOOL_USE } from "../read/tool-use.js";
import { canonicalJson } from "../recipe/canonical-json.js";
import type { OutputManifest } from "../write/output-manifest.js";
import { type SummedFindings, sumFindings } from "./findings.js";
import type { RunSurvey } from "./survey.js";

type Tally = Pick<
  OutputManifest,
  | "counts"
  | "coverage"
  | "trained_of_eligible"
  | "trained_of_captured"
  | "weight"
  | "reward_mean"
  | "terminations"
  | "exclusions"
  | "group_flags"
  | "uncaptured"
  | "tool_use"
> & { findings: SummedFindings; models: ModelFacts[] };

export function tallyRuns(surveys: readonly RunSurvey[], trials: number): Tally {
  const heads = surveys.map((survey) => survey.head);
  const coverage = heads.reduce((sum, head) => addCoverage(sum, head.coverage), emptyCoverage());
  assertCoverage(coverage, "the output", "internal");
  const samples = surveys.flatMap((survey) => survey.samples);
  const rewards = heads
    .filter((head) => head.excluded === null)
    .flatMap((head) => (head.reward === null ? [] : [head.reward]));
  const groups = new Map(heads.map((head) => [head.group.group_id, head.group]));
  return {
    counts: {
      trials,
      runs: surveys.length,
      samples: samples.length,
      samples_untrained: samples.filter((sample) => sample.trained_tokens === 0).length,
      trajectories: sum(heads.map((head) => head.trajectory_ids.length)),
      unsealed_trajectories: sum(surveys.map((survey) => survey.unsealed)),
      turns: sum(heads.map((head) => head.turns)),
      tokens: sum(samples.map((sample) => sample.tokens)),
      groups: groups.size,
      rewarded_runs: heads.filter((head) => head.reward !== null).length,
      dangling_calls: sum(surveys.map((survey) => survey.dangling_calls)),
    },
    coverage,
    trained_of_eligible: ratio(coverage.trained_tokens, coverage.eligible_tokens),
    trained_of_captured: ratio(coverage.trained_tokens, coverage.captured_tokens),
    weight: sum(heads.map((head) => head.weight)),
    reward_mean: rewards.length > 0 ? sum(rewards) / rewards.length : null,
    terminations: count(heads.map((head) => head.termination)),
    exclusions: count(heads.flatMap((head) => (head.excluded === null ? [] : [head.excluded]))),
    group_flags: count([...groups.values()].flatMap((group) => group.flags)),
    tool_use: {
      ...surveys.map((survey) => survey.tool_use).reduce(addToolUse, NO_TOOL_USE),
      silent_runs: surveys.filter(({ tool_use }) => tool_use.offered_turns > 0 && tool_use.called_turns === 0).length,
    },
    models: [
      ...new Map(surveys.flatMap(({ models }) => models).map((facts) => [canonicalJson(facts), facts])).values(),
    ],
    findings: sumFindings(surveys.map((survey) => survey.findings)),
    uncaptured: count(
      surveys.flatMap((survey) => survey.uncaptured.flatMap(([reason, n]) => Array<string>(n).fill(reason))),
    ),
  };
}

function ratio(part: number, whole: number): number | null {
  return whole === 0 ? null : part / whole;
}

function sum(values: readonly number[]): number {
  return values.reduce((a, b) => a + b, 0);
}

function count(names: readonly string[]): Record<string, number> {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return Object.fromEntries([...counts].sort(([a], [b]) => (a < b ? -1 : 1)));
}
