/** Which trajectories make a run, and what it is called. Mapping file, then what was recorded, then the trial directory. Pure. */
import { basename, dirname } from "node:path";
import type { RecordedIdentity } from "../read/evidence.js";
import { compareText, shortName } from "../read/order.js";
import type { Value } from "../recipe/expression.js";
import type { FoundTrial } from "./discover.js";
import type { TrialFacts } from "./harbor.js";
import { type Mapped, mappedOf, type RowIndex } from "./side-files.js";

/** A run before its trajectories are read. */
export interface RunSource {
  run_id: string;
  trial_id: string;
  /** Recorded, mapped or derived group. */
  group_id: string;
  attempt: number;
  trial_dir: string;
  facts: TrialFacts | null;
  trajectories: { dir: string; trajectory_id: string }[];
  scores: [string, Value][];
  scores_source: string | null;
  /** Reward of single turns, when a turn-reward file names this run. */
  turn_rewards: TurnReward[] | null;
  metadata: [string, string][];
  /** `superseded_by_attempt_N`, or the reason of the exclusions file. */
  excluded: string | null;
  conflicts: string[];
}

/** `trajectory_id` null: the row named the run, not one of its trajectories. */
interface TurnReward {
  trajectory_id: string | null;
  turn: number;
  reward: number;
}

/** A trajectory directory with the ids that it carries. */
export interface Identified {
  dir: string;
  trajectory_id: string;
  identity: RecordedIdentity;
}

export interface SideFiles {
  rewards: RowIndex | null;
  exclusions: RowIndex | null;
  turnRewards: RowIndex | null;
}

/** All runs of the found trials, sorted by trial directory, run and attempt. `identify` reads what a trajectory recorded. */
export function runsOf(
  trials: readonly FoundTrial[],
  identify: (dir: string) => Identified,
  files: SideFiles,
): RunSource[] {
  const runs = new Map<string, RunSource>();
  const seen = new Map<string, string>();
  for (const trial of trials) {
    for (const each of trial.trajectories.length > 0 ? trial.trajectories.map(identify) : [null]) {
      const run = sourceOf(trial, each, files);
      const key = JSON.stringify([run.run_id, run.trial_id, run.attempt]);
      const known = runs.get(key);
      const target = known ?? run;
      if (known) mergeInto(known, run);
      else runs.set(key, run);
      if (each === null) continue;
      const first = seen.get(each.trajectory_id);
      if (first === undefined) target.trajectories.push({ dir: each.dir, trajectory_id: each.trajectory_id });
      else
        target.conflicts.push(
          `trajectory ${each.trajectory_id} was found twice; the copy in ${shortName(each.dir)} is left out`,
        );
      seen.set(each.trajectory_id, each.dir);
    }
  }
  const list = [...runs.values()];
  supersede(list);
  for (const run of list) applySideFiles(run, files);
  return list.sort(bySource);
}

function bySource(a: RunSource, b: RunSource): number {
  return compareText(a.trial_dir, b.trial_dir) || compareText(a.run_id, b.run_id) || a.attempt - b.attempt;
}

function sourceOf(trial: FoundTrial, each: Identified | null, files: SideFiles): RunSource {
  const { facts, dir } = trial;
  const recorded = each?.identity ?? null;
  // A bare trajectory without a trial directory: what one id is known to be, the other is too.
  const bare = facts === null && each !== null;
  const derivedTrial = facts?.trial_name ?? (bare ? (recorded?.run_id ?? each.trajectory_id) : shortName(dir));
  const derivedRun = bare ? (recorded?.trial_id ?? each.trajectory_id) : shortName(dir);
  const ids = { run_id: recorded?.run_id ?? derivedRun, trial_id: recorded?.trial_id ?? derivedTrial };
  const mapped = mappedFor(files.rewards, {
    run_id: ids.run_id,
    trial_id: trialNames(ids.trial_id, facts),
    trajectory_id: each ? [each.trajectory_id] : [],
    path: paths(trial, each),
  });
  const conflicts: string[] = [...(facts?.problems ?? [])];
  const choose = (
    name: string,
    first: string | null | undefined,
    second: string | null | undefined,
    last: string,
  ): string => {
    if (first != null && second != null && first !== second)
      conflicts.push(`${name}: ${first} (mapping file) and ${second} (recorded)`);
    return first ?? second ?? last;
  };
  return {
    run_id: choose("run_id", mapped?.run_id, recorded?.run_id, derivedRun),
    trial_id: choose("trial_id", mapped?.trial_id, recorded?.trial_id, derivedTrial),
    group_id: choose("group_id", mapped?.group_id, recorded?.group_id, derivedGroup(trial, recorded)),
    attempt: mapped?.attempt ?? recorded?.attempt ?? 1,
    trial_dir: dir,
    facts,
    trajectories: [],
    ...scoresFor(mapped, facts, conflicts),
    turn_rewards: null,
    metadata: [...(recorded?.metadata ?? [])],
    excluded: null,
    conflicts,
  };
}

/** What a row may call the trial: its id, and the name that the trial's runner gave it. */
function trialNames(trialId: string, facts: TrialFacts | null): string[] {
  return [...new Set([trialId, facts?.trial_name ?? trialId])];
}

function paths(trial: FoundTrial, each: Identified | null): string[] {
  const dirs = each ? [trial.dir, each.dir] : [trial.dir];
  return [...new Set(dirs.flatMap((dir) => [basename(dir), shortName(dir), dir]))];
}

function mappedFor(index: RowIndex | null, ids: Parameters<RowIndex["find"]>[0]): Mapped | null {
  const rows = index?.find(ids) ?? [];
  if (rows.length === 0) return null;
  const mapped = mappedOf(rows);
  // A name by which the trial was found is no new id.
  return mapped.trial_id !== null && ids.trial_id.includes(mapped.trial_id) ? { ...mapped, trial_id: null } : mapped;
}

/** The task's name within its job: Harbor's task, the recorded `task`, the part of a trial name before `__`, the directory above. */
function derivedGroup(trial: FoundTrial, recorded: RecordedIdentity | null): string {
  const job = basename(dirname(trial.dir));
  const task = trial.facts?.task.id ?? recorded?.metadata.get("task");
  if (task) return `${job}/${task}`;
  const name = basename(trial.dir);
  return name.includes("__") ? `${job}/${name.slice(0, name.indexOf("__"))}` : job;
}

function scoresFor(
  mapped: Mapped | null,
  facts: TrialFacts | null,
  conflicts: string[],
): Pick<RunSource, "scores" | "scores_source"> {
  const found = facts?.scores ?? new Map<string, Value>();
  if (!mapped || mapped.scores.size === 0) return { scores: [...found], scores_source: facts?.scores_source ?? null };
  for (const [name, value] of mapped.scores) {
    if (found.has(name) && found.get(name) !== value) {
      conflicts.push(`score ${name}: ${value} (mapping file) and ${found.get(name)} (${facts?.scores_source})`);
    }
  }
  return { scores: [...new Map([...found, ...mapped.scores])], scores_source: "mapping file" };
}

/** A second trial directory of the same run: the first one's facts stay, a difference is told. */
function mergeInto(known: RunSource, other: RunSource): void {
  if (known.trial_dir === other.trial_dir) {
    for (const conflict of other.conflicts) if (!known.conflicts.includes(conflict)) known.conflicts.push(conflict);
    for (const [key, value] of other.metadata)
      if (!known.metadata.some(([have]) => have === key)) known.metadata.push([key, value]);
    return;
  }
  known.conflicts.push(...other.conflicts);
  if (JSON.stringify(known.scores) !== JSON.stringify(other.scores)) {
    known.conflicts.push(
      `scores of ${shortName(known.trial_dir)} and ${shortName(other.trial_dir)} differ; the first are used`,
    );
  }
}

const SUPERSEDED = "superseded_by_attempt_";

/** True for the exclusion of an older attempt. */
export function isSuperseded(excluded: string | null): boolean {
  return excluded?.startsWith(SUPERSEDED) ?? false;
}

/** Of the attempts of one trial, the newest counts; the others are kept and marked. */
function supersede(runs: RunSource[]): void {
  const newest = new Map<string, number>();
  const key = (run: RunSource) => JSON.stringify([run.run_id, run.trial_id]);
  for (const run of runs) newest.set(key(run), Math.max(run.attempt, newest.get(key(run)) ?? 0));
  for (const run of runs) {
    const last = newest.get(key(run))!;
    if (run.attempt < last) run.excluded = `${SUPERSEDED}${last}`;
  }
}

function applySideFiles(run: RunSource, files: SideFiles): void {
  const ids = {
    run_id: run.run_id,
    trial_id: trialNames(run.trial_id, run.facts),
    trajectory_id: run.trajectories.map((each) => each.trajectory_id),
    path: [
      ...new Set(
        [run.trial_dir, ...run.trajectories.map((each) => each.dir)].flatMap((dir) => [
          basename(dir),
          shortName(dir),
          dir,
        ]),
      ),
    ],
  };
  const verdict = files.exclusions?.find(ids)[0];
  if (verdict && run.excluded === null) run.excluded = String(verdict.cells.get("reason"));
  const turns = files.turnRewards?.find(ids) ?? [];
  const rewards = turns.map(({ cells }): TurnReward => {
    const trajectory = cells.get("trajectory_id");
    return {
      trajectory_id: trajectory == null ? null : String(trajectory),
      turn: Number(cells.get("turn")),
      reward: Number(cells.get("reward")),
    };
  });
  if (rewards.length > 0) run.turn_rewards = rewards;
}
