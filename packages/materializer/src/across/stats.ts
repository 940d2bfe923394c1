/** `tito stats`: the figures of every run, one after the other, so that it can stop and go on. I/O edge. */
import { createHash } from "node:crypto";
import { lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTick } from "node:timers/promises";
import { assembleRun } from "../build/assemble.js";
import type { RunSource } from "../find/run-source.js";
import { findRuns, type RunPaths } from "../jobs/materialize.js";
import { MATERIALIZER_VERSION } from "../jobs/plan.js";
import { newestVersionOf, surveyRun } from "../jobs/survey.js";
import { readHarness } from "../read/harness.js";
import { commonParent } from "../read/order.js";
import { canonicalJson } from "../recipe/canonical-json.js";
import { loadPolicy, type Policy, policyDigest } from "../recipe/policy.js";
import { Notes } from "./notes.js";
import { figuresOf, type RunFigures } from "./run-figures.js";
import { type Stats, sumFigures } from "./sum-figures.js";

export interface StatsOptions extends RunPaths {
  policy?: Policy | undefined;
  /** File that finished runs are noted in, and gone on from. */
  notes?: string | undefined;
  /** Stops between two runs. */
  signal?: AbortSignal | undefined;
  onProgress?: ((progress: { done: number; total: number }) => void) | undefined;
}

/** Null figures: it was stopped. */
export interface StatsResult {
  stats: Stats | null;
  done: number;
  total: number;
}

/** Figures across all runs below `paths`. Errors: `not_found` without any trial, `usage`, `cannot_write` for the notes. */
export async function statsOf(options: StatsOptions): Promise<StatsResult> {
  const policy = options.policy ?? loadPolicy(null);
  const { sources } = findRuns(options);
  const notes = new Notes<RunFigures>(options.notes ?? null, (value) => value as RunFigures);
  const root = commonParent(sources.map((source) => source.trial_dir));
  const newestVersion = newestOf(sources, policy);
  const all: RunFigures[] = [];
  for (const source of sources) {
    // Lets a signal in, and the progress line out.
    await nextTick();
    if (options.signal?.aborted) return { stats: null, done: all.length, total: sources.length };
    const key = runKeyOf(source, [MATERIALIZER_VERSION, policyDigest(policy), newestVersion]);
    const known = notes.get(key);
    const figures = known ?? runFigures(source, { policy, root, newestVersion });
    if (known === undefined) notes.put(key, figures);
    all.push(figures);
    options.onProgress?.({ done: all.length, total: sources.length });
  }
  return { stats: sumFigures(all), done: all.length, total: sources.length };
}

function newestOf(sources: readonly RunSource[], policy: Policy): number | null {
  const { max_version_age, current_version } = policy.select;
  if (max_version_age === null || current_version !== null) return current_version;
  const versions = sources.map((source) => newestVersionOf(source, policy)).filter((version) => version !== null);
  return versions.length === 0 ? null : versions.reduce((a, b) => Math.max(a, b));
}

interface RunContext {
  policy: Policy;
  root: string;
  newestVersion: number | null;
}

function runFigures(source: RunSource, { policy, root, newestVersion }: RunContext): RunFigures {
  const run = assembleRun(source, policy, newestVersion);
  const { head, unsealed } = surveyRun(run, source, { policy, root });
  const { run_id, group_id, model, termination, termination_detail, excluded, reward } = head;
  const harness = source.trajectories.map(({ dir }) => readHarness(dir)).find((name) => name !== null);
  return {
    ...{ run_id, group_id, trial_dir: source.trial_dir, model, termination, termination_detail, excluded, reward },
    harness: harness ?? new Map(source.metadata).get("harness") ?? null,
    unsealed,
    problems: source.facts?.problems ?? [],
    ...figuresOf(run, policy, newestVersion),
  };
}

/** Changes with everything that the figures of a run are made from: ids, scores, settings, and every file by name, size and time. */
function runKeyOf(source: RunSource, settings: unknown): string {
  const files = source.trajectories.flatMap(({ dir }) => [dir, join(dir, "segments")].flatMap(filesOf));
  return createHash("sha256")
    .update(canonicalJson([source, settings, files]))
    .digest("hex");
}

function filesOf(dir: string): [string, number, number][] {
  try {
    return readdirSync(dir)
      .sort()
      .map((name) => [name, lstatSync(join(dir, name)).size, lstatSync(join(dir, name)).mtimeMs]);
  } catch {
    return [];
  }
}
