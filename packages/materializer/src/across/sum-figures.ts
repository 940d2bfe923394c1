/** The figures of all runs together. Pure. */
import { addCoverage, type Coverage, emptyCoverage } from "../build/coverage.js";
import { versionNumbers } from "../read/versions.js";
import {
  type DriftFigures,
  LOGPROB_EDGES,
  REALIGN_BOUNDS,
  type RunFigures,
  type SplitFigures,
  sumSplits,
} from "./run-figures.js";

/** Smallest, middle, 90th and 99th percentile (the value at that rank, never between two), largest, and mean. */
export interface Spread {
  min: number;
  p50: number;
  p90: number;
  p99: number;
  max: number;
  mean: number;
}

/** One harness and model. */
interface Part {
  harness: string | null;
  model: string | null;
  runs: number;
  turns: number;
  samples: number;
  openings: number;
  captured_tokens: number;
  eligible_tokens: number;
  trained_tokens: number;
  cached_share: number | null;
}

/** A run that cannot be read whole, or is not finished. */
interface NotWhole {
  run_id: string;
  trial_dir: string;
  why: string;
}

export interface Stats {
  schema: "tito.stats/v1";
  runs: number;
  groups: number;
  turns: number;
  reward_mean: number | null;
  coverage: Coverage;
  trained_of_eligible: number | null;
  trained_of_captured: number | null;
  samples_per_run: Spread | null;
  sample_tokens: Spread | null;
  openings: Record<string, number>;
  drift: Record<string, DriftFigures>;
  split: SplitFigures;
  /** What each bound of `build.realign_max_lost_tokens` would save and lose against the policy in force. */
  realign: { bound: number; samples_saved: number; repeated_tokens_saved: number; trained_tokens_lost: number }[];
  logprobs: { mean: number | null; classes: { from: number | null; to: number; tokens: number }[] };
  cache: { prompt_tokens: number; cached_tokens: number; share: number | null; turns_unreported: number };
  versions: { version: string; age: number | null; tokens: number }[];
  terminations: Record<string, number>;
  exclusions: Record<string, number>;
  parts: Part[];
  not_whole: NotWhole[];
}

export function sumFigures(runs: readonly RunFigures[]): Stats {
  const coverage = runs.reduce((sum, run) => addCoverage(sum, run.coverage), emptyCoverage());
  const rewards = runs.flatMap((run) => (run.excluded === null && run.reward !== null ? [run.reward] : []));
  const split = sumSplits(runs.map((run) => run.split));
  const cache = sumCache(runs);
  return {
    schema: "tito.stats/v1",
    runs: runs.length,
    groups: new Set(runs.map((run) => run.group_id)).size,
    turns: total(runs.map((run) => run.turns)),
    reward_mean: rewards.length === 0 ? null : total(rewards) / rewards.length,
    coverage,
    trained_of_eligible: ratio(coverage.trained_tokens, coverage.eligible_tokens),
    trained_of_captured: ratio(coverage.trained_tokens, coverage.captured_tokens),
    samples_per_run: spreadOf(runs.map((run) => run.split.samples)),
    sample_tokens: spreadOf(runs.flatMap((run) => run.sample_tokens)),
    openings: sumCounts(runs.map((run) => run.openings)),
    drift: sumDrift(runs),
    split,
    realign: REALIGN_BOUNDS.map((bound, i) => {
      const other = sumSplits(runs.map((run) => run.realigned[i]!));
      return {
        bound,
        samples_saved: split.samples - other.samples,
        repeated_tokens_saved: split.repeated_tokens - other.repeated_tokens,
        trained_tokens_lost: split.trained_tokens - other.trained_tokens,
      };
    }),
    logprobs: logprobsOf(runs, coverage.trained_tokens),
    cache: { ...cache, share: ratio(cache.cached_tokens, cache.prompt_tokens) },
    versions: versionsOf(runs),
    terminations: countNames(runs.map((run) => run.termination)),
    exclusions: countNames(runs.flatMap((run) => (run.excluded === null ? [] : [run.excluded]))),
    parts: partsOf(runs),
    not_whole: notWholeOf(runs),
  };
}

/** Null without values. The value at rank ⌈share × n⌉. */
export function spreadOf(values: readonly number[]): Spread | null {
  if (values.length === 0) return null;
  const sorted = Float64Array.from(values).sort();
  const at = (share: number) => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]!;
  return { min: at(0), p50: at(0.5), p90: at(0.9), p99: at(0.99), max: at(1), mean: total(values) / values.length };
}

function logprobsOf(runs: readonly RunFigures[], trained: number): Stats["logprobs"] {
  const edges = [...LOGPROB_EDGES, null];
  return {
    mean: trained === 0 ? null : total(runs.map((run) => run.logprob_sum)) / trained,
    classes: edges.map((from, i) => ({
      from,
      to: i === 0 ? 0 : LOGPROB_EDGES[i - 1]!,
      tokens: total(runs.map((run) => run.logprobs[i]!)),
    })),
  };
}

/** Ages count from the newest version whose name ends in a number, of a range its oldest; other names have none. */
function versionsOf(runs: readonly RunFigures[]): Stats["versions"] {
  const tokens = Object.entries(sumCounts(runs.map((run) => run.versions)));
  const newest = tokens.reduce((max, [name]) => Math.max(max, versionNumbers(name)?.newest ?? -1), -1);
  return tokens
    .map(([version, count]) => {
      const numbers = versionNumbers(version);
      return { version, age: numbers === null ? null : newest - numbers.oldest, tokens: count };
    })
    .sort((a, b) => (a.age ?? Number.MAX_SAFE_INTEGER) - (b.age ?? Number.MAX_SAFE_INTEGER));
}

function partsOf(runs: readonly RunFigures[]): Part[] {
  const parts = new Map<string, RunFigures[]>();
  for (const run of runs) {
    const key = JSON.stringify([run.harness ?? "", run.model ?? ""]);
    parts.set(key, [...(parts.get(key) ?? []), run]);
  }
  return [...parts]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, members]) => {
      const sum = (of: (run: RunFigures) => number) => total(members.map(of));
      const cache = sumCache(members);
      return {
        harness: members[0]!.harness,
        model: members[0]!.model,
        runs: members.length,
        turns: sum((run) => run.turns),
        samples: sum((run) => run.split.samples),
        openings: sum((run) => total(Object.values(run.openings))),
        captured_tokens: sum((run) => run.coverage.captured_tokens),
        eligible_tokens: sum((run) => run.coverage.eligible_tokens),
        trained_tokens: sum((run) => run.coverage.trained_tokens),
        cached_share: ratio(cache.cached_tokens, cache.prompt_tokens),
      };
    });
}

function notWholeOf(runs: readonly RunFigures[]): NotWhole[] {
  return runs.flatMap(({ run_id, trial_dir, termination, termination_detail, unsealed, problems }) => {
    const told = [...(termination === "capture_incomplete" ? [termination_detail ?? termination] : []), ...problems];
    if (told.length > 0) return [{ run_id, trial_dir, why: told.join("; ") }];
    const why = "not sealed: still being written, or its recorder was killed";
    return unsealed > 0 ? [{ run_id, trial_dir, why }] : [];
  });
}

function sumCache(runs: readonly RunFigures[]): RunFigures["cache"] {
  return {
    prompt_tokens: total(runs.map((run) => run.cache.prompt_tokens)),
    cached_tokens: total(runs.map((run) => run.cache.cached_tokens)),
    turns_unreported: total(runs.map((run) => run.cache.turns_unreported)),
  };
}

function sumDrift(runs: readonly RunFigures[]): Record<string, DriftFigures> {
  const sums = new Map<string, DriftFigures>();
  for (const { drift } of runs) {
    for (const [cause, cost] of Object.entries(drift)) {
      const sum = sums.get(cause) ?? { turns: 0, lost_tokens: 0, reread_tokens: 0 };
      sum.turns += cost.turns;
      sum.lost_tokens += cost.lost_tokens;
      sum.reread_tokens += cost.reread_tokens;
      sums.set(cause, sum);
    }
  }
  return Object.fromEntries([...sums].sort(([a], [b]) => (a < b ? -1 : 1)));
}

function sumCounts(all: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const sums = new Map<string, number>();
  for (const counts of all)
    for (const [name, count] of Object.entries(counts)) sums.set(name, (sums.get(name) ?? 0) + count);
  return Object.fromEntries([...sums].sort(([a], [b]) => (a < b ? -1 : 1)));
}

function countNames(names: readonly string[]): Record<string, number> {
  return sumCounts(names.map((name) => ({ [name]: 1 })));
}

const total = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);
const ratio = (part: number, whole: number): number | null => (whole === 0 ? null : part / whole);
