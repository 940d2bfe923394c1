/** The figures of one run, small enough to keep thousands of them. Pure. */
import { driftReport } from "@tito/continuity";
import type { AssembledRun, AssembledTrajectory } from "../build/assemble.js";
import { type BuiltTrajectory, buildSamples, type PlannedSample } from "../build/build.js";
import type { Coverage } from "../build/coverage.js";
import { selectTurns } from "../build/select.js";
import type { TrajectoryEvidence } from "../read/evidence.js";
import { Lines } from "../read/lines.js";
import type { Policy } from "../recipe/policy.js";

/** Bounds of `build.realign_max_lost_tokens` that are tried. */
export const REALIGN_BOUNDS = [1, 2, 4, 8, 16, 32, 64, 128, 256] as const;

/** Lower edges of the classes of trained log probabilities, the likeliest first; the last class has no lower edge. */
export const LOGPROB_EDGES = [-0.001, -0.01, -0.1, -0.5, -1, -2, -4, -8, -16] as const;

/** What splitting costs under one realign bound. */
export interface SplitFigures {
  samples: number;
  sample_tokens: number;
  /** Tokens of samples that an earlier sample of the same trajectory begins with too: computed once more by a trainer. */
  repeated_tokens: number;
  trained_tokens: number;
  /** Sampled tokens that the realignment gave up. */
  overwritten_tokens: number;
}

export interface DriftFigures {
  turns: number;
  lost_tokens: number;
  reread_tokens: number;
}

export interface RunFigures {
  run_id: string;
  group_id: string;
  trial_dir: string;
  model: string | null;
  harness: string | null;
  termination: string;
  termination_detail: string | null;
  excluded: string | null;
  reward: number | null;
  /** Trajectories without a seal: still being written, or left by a kill. */
  unsealed: number;
  /** Files of the trial that are there and cannot be read. */
  problems: readonly string[];
  turns: number;
  coverage: Coverage;
  sample_tokens: number[];
  split: SplitFigures;
  /** By bound of `REALIGN_BOUNDS`. */
  realigned: SplitFigures[];
  /** Segments that were opened, by reason; the first of each trajectory is one of them. */
  openings: Record<string, number>;
  drift: Record<string, DriftFigures>;
  /** Trained tokens by class of `LOGPROB_EDGES`, one more than there are edges. */
  logprobs: number[];
  logprob_sum: number;
  /** Prompt tokens of turns whose engine reports cached tokens, and how many were cached. */
  cache: { prompt_tokens: number; cached_tokens: number; turns_unreported: number };
  /** Sampled tokens by weight version. */
  versions: Record<string, number>;
}

export type Figures = Omit<
  RunFigures,
  | "run_id"
  | "group_id"
  | "trial_dir"
  | "model"
  | "harness"
  | "termination"
  | "termination_detail"
  | "excluded"
  | "reward"
  | "unsealed"
  | "problems"
>;

/** Counts of the run's tokens, samples and turns. `newestVersion` as for selection. */
export function figuresOf(run: AssembledRun, policy: Policy, newestVersion: number | null): Figures {
  const { trajectories, coverage } = run;
  const samples = trajectories.flatMap(({ built }) => built.samples);
  const turns = trajectories.flatMap(({ evidence }) => evidence.turns);
  const drift = driftReport(
    turns.map((turn) => ({ decision: turn.decision, prompt_tokens: turn.prompt_keep + turn.prompt_suffix.length })),
  );
  const opened = new Map<string, number>();
  for (const turn of turns) if (turn.decision.kind !== "append") add(opened, turn.decision.reason, 1);
  return {
    turns: turns.length,
    coverage,
    sample_tokens: samples.map((sample) => sample.length),
    split: sumSplits(trajectories.map(({ evidence, built }) => splitOf(evidence, built))),
    realigned: REALIGN_BOUNDS.map((bound) =>
      sumSplits(trajectories.map((each) => realignedSplit(each, policy, { bound, newestVersion }))),
    ),
    openings: record(opened),
    drift: Object.fromEntries(drift.causes),
    ...logprobsOf(samples),
    cache: cacheOf(turns),
    versions: versionsOf(turns),
  };
}

function realignedSplit(
  { evidence, built }: AssembledTrajectory,
  policy: Policy,
  given: { bound: number; newestVersion: number | null },
): SplitFigures {
  if (evidence.segments.length < 2) return splitOf(evidence, built);
  const verdicts = selectTurns(evidence, { policy: policy.select, newestVersion: given.newestVersion });
  const other = buildSamples(evidence, verdicts, { ...policy.build, realign_max_lost_tokens: given.bound });
  return splitOf(evidence, other);
}

function splitOf(evidence: TrajectoryEvidence, built: BuiltTrajectory): SplitFigures {
  const lines = evidence.lines ?? new Lines(evidence);
  const longest = new Map<number, number>();
  const figures = { samples: 0, sample_tokens: 0, repeated_tokens: 0, trained_tokens: 0, overwritten_tokens: 0 };
  for (const sample of built.samples) {
    const segment = sample.line.segment;
    const before = longest.get(segment) ?? 0;
    // A sample of a line that has been shown repeats it; else it repeats what its oldest segment has from its parent.
    const inherited = Math.min(...sample.segments.map((each) => lines.of(each).inherited), sample.length);
    figures.samples += 1;
    figures.sample_tokens += sample.length;
    figures.repeated_tokens += Math.min(sample.length, Math.max(before, inherited));
    figures.trained_tokens += sample.trained_tokens;
    longest.set(segment, Math.max(before, sample.length));
  }
  for (const { reason, tokens } of built.outside)
    if (reason === "realign_overwritten") figures.overwritten_tokens += tokens;
  return figures;
}

const NO_SPLIT: SplitFigures = {
  samples: 0,
  sample_tokens: 0,
  repeated_tokens: 0,
  trained_tokens: 0,
  overwritten_tokens: 0,
};

export function sumSplits(all: readonly SplitFigures[]): SplitFigures {
  return all.reduce(
    (a, b) => ({
      samples: a.samples + b.samples,
      sample_tokens: a.sample_tokens + b.sample_tokens,
      repeated_tokens: a.repeated_tokens + b.repeated_tokens,
      trained_tokens: a.trained_tokens + b.trained_tokens,
      overwritten_tokens: a.overwritten_tokens + b.overwritten_tokens,
    }),
    NO_SPLIT,
  );
}

function logprobsOf(samples: readonly PlannedSample[]) {
  const logprobs = new Array<number>(LOGPROB_EDGES.length + 1).fill(0);
  let logprob_sum = 0;
  for (const { spans } of samples) {
    for (const { start, end, from, turn, reason } of spans) {
      if (reason !== "trained" || turn.logprobs === null) continue;
      for (const value of turn.logprobs.subarray(from, from + end - start)) {
        const at = LOGPROB_EDGES.findIndex((edge) => value >= edge);
        logprobs[at < 0 ? LOGPROB_EDGES.length : at]! += 1;
        logprob_sum += value;
      }
    }
  }
  return { logprobs, logprob_sum };
}

function cacheOf(turns: TrajectoryEvidence["turns"]): RunFigures["cache"] {
  const cache = { prompt_tokens: 0, cached_tokens: 0, turns_unreported: 0 };
  for (const { usage, prompt_keep, prompt_suffix } of turns) {
    if (usage.cached_tokens === null) cache.turns_unreported += 1;
    else {
      cache.prompt_tokens += prompt_keep + prompt_suffix.length;
      cache.cached_tokens += usage.cached_tokens;
    }
  }
  return cache;
}

function versionsOf(turns: TrajectoryEvidence["turns"]): Record<string, number> {
  const versions = new Map<string, number>();
  for (const turn of turns)
    for (const { version, start, end } of turn.weight_versions) add(versions, version, end - start);
  return record(versions);
}

function add(counts: Map<string, number>, name: string, by: number): void {
  counts.set(name, (counts.get(name) ?? 0) + by);
}

function record(counts: ReadonlyMap<string, number>): Record<string, number> {
  return Object.fromEntries([...counts].sort(([a], [b]) => (a < b ? -1 : 1)));
}
