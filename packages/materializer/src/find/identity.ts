/** Which trajectories make a run, and what it is called. Mapping file, then what was recorded, then the trial directory. Pure. */
import { basename, dirname } from "node:path";
import { isMadeRunId } from "@tito/format";
import type { RecordedIdentity } from "../read/evidence.js";
import { compareText, shortName } from "../read/order.js";
import type { Value } from "../recipe/expression.js";
import type { FoundTrial } from "./discover.js";
import type { TrialFacts } from "./harbor.js";
import { type Settled, settle, TrialNames } from "./homes.js";
import { type Draft, livesOf, supersede } from "./lives.js";
import type { Identified, Lived, RunSource, SideFiles, TurnReward } from "./run-source.js";
import { type Mapped, mappedOf, type RowIndex } from "./side-files.js";

/** A trajectory of a trial as a run of its own, before those that belong together are joined. */
interface Part extends Omit<Draft, "lived"> {
  each: Identified | null;
}

/** All runs of the found trials, sorted by trial directory, run and attempt. `identify` reads what a trajectory recorded. */
export function runsOf(
  trials: readonly FoundTrial[],
  identify: (dir: string) => Identified,
  files: SideFiles,
): RunSource[] {
  const names = new TrialNames(trials);
  const together = new Map<string, Part[]>();
  for (const settled of settle(trials, identify, files.rewards)) {
    const part = partOf(settled, names, files);
    const key = keyOf(part);
    together.set(key, [...(together.get(key) ?? []), part]);
  }
  const seen = new Set<string>();
  const drafts = [...together.values()].flatMap((parts) => {
    const lives = parts[0]!.named || stepsOf(parts[0]!) > 1 ? [parts] : livesOf(parts, livedOf);
    return lives.map((life, i) => joinParts(life, { seen, last: i === lives.length - 1 }));
  });
  supersede(drafts);
  const list = drafts.map((draft) => draft.run);
  for (const run of list) applySideFiles(run, files);
  return list.sort(bySource);
}

/** Equal run and trial ids from flags, else the same trial directory, make a run. */
function keyOf({ run, named }: Part): string {
  const { run_id, trial_id, attempt, trial_dir } = run;
  return JSON.stringify(named || run.facts === null ? [run_id, trial_id, attempt] : ["", trial_dir, trial_id, attempt]);
}

function livedOf(part: Part): Lived | null {
  return part.each?.lived() ?? null;
}

function stepsOf(part: Part): number {
  return part.run.facts?.steps ?? 0;
}

/** One run of the trajectories that belong together. */
function joinParts(parts: readonly Part[], context: { seen: Set<string>; last: boolean }): Draft {
  const [{ run, named, trial_given, each: first }] = parts as [Part, ...Part[]];
  for (const { run: other, each } of parts) {
    if (other !== run) mergeInto(run, other);
    if (each === null) continue;
    const { dir, trajectory_id } = each;
    if (!context.seen.has(trajectory_id)) run.trajectories.push({ dir, trajectory_id });
    else run.conflicts.push(`trajectory ${trajectory_id} was found twice; the copy in ${shortName(dir)} is left out`);
    context.seen.add(trajectory_id);
  }
  // Two lives of a trial that recorded no run id need a name each.
  if (!context.last && first !== null && first.identity.run_id === null) run.run_id = first.trajectory_id;
  const several = severalTrajectories(parts, run);
  if (several !== null) run.warnings.push(several);
  return { run, named, trial_given, lived: () => span(parts) };
}

function span(parts: readonly Part[]): Lived | null {
  const lived = parts.map(livedOf).filter((each) => each !== null);
  if (lived.length === 0) return null;
  const first_ms = Math.min(...lived.map((each) => each.first_ms));
  return { first_ms, last_ms: Math.max(...lived.map((each) => each.last_ms)) };
}

/** What to tell of a run that several trajectories make; null when one does, or each is a step's. */
function severalTrajectories(parts: readonly Part[], run: RunSource): string | null {
  const ids = run.trajectories.map((each) => each.trajectory_id);
  const what = `${ids.length} trajectories train as one run (${ids.slice(0, 4).join(", ")}${ids.length > 4 ? ", …" : ""})`;
  const steps = stepsOf(parts[0]!);
  if (ids.length < 2 || (steps > 1 && ids.length <= steps)) return null;
  if (steps > 1) return `${what}, although the trial had ${steps} steps: a step may have been run again`;
  if (!parts[0]!.named) return `${what}: they lie in one trial directory and were recorded at the same time`;
  if (livesOf(parts, livedOf).length < 2) return null;
  return `${what}: they have the same ids and were recorded one after the other; --attempt N tells a second attempt`;
}

function bySource(a: RunSource, b: RunSource): number {
  return compareText(a.trial_dir, b.trial_dir) || compareText(a.run_id, b.run_id) || a.attempt - b.attempt;
}

function partOf({ trial, each, conflicts }: Settled, names: TrialNames, files: SideFiles): Part {
  const { facts, dir } = trial;
  const recorded = each?.identity ?? null;
  // A bare trajectory without a trial directory: what one id is known to be, the other is too.
  const bare = facts === null && each !== null;
  const derivedTrial = facts?.trial_name ?? (bare ? (recorded?.run_id ?? each.trajectory_id) : shortName(dir));
  const derivedRun = bare ? (recorded?.trial_id ?? each.trajectory_id) : shortName(dir);
  const ids = { run_id: recorded?.run_id ?? derivedRun, trial_id: recorded?.trial_id ?? derivedTrial };
  // Only the mapping file takes a trajectory out of the trial that it names itself: then that trial's rows are not about it.
  const recordedHome = recorded?.trial_id == null || facts === null ? null : names.named(recorded.trial_id, trial);
  const moved = recordedHome !== null && recordedHome !== trial;
  const mapped = mappedFor(files.rewards, {
    run_id: ids.run_id,
    trial_id: moved ? trialNames(derivedTrial, facts) : trialNames(ids.trial_id, facts),
    trajectory_id: each ? [each.trajectory_id] : [],
    path: paths(trial, each),
  });
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
  const trial_id = choose("trial_id", moved ? derivedTrial : mapped?.trial_id, recorded?.trial_id, derivedTrial);
  const other = facts === null ? null : names.named(trial_id, trial);
  if (other !== null && other !== trial)
    conflicts.push(
      `trial_id: ${trial_id} is also the name of ${shortName(other.dir)}; the result in ${shortName(dir)} is used`,
    );
  const run: RunSource = {
    run_id: choose("run_id", mapped?.run_id, recorded?.run_id, derivedRun),
    trial_id,
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
    warnings: [...(facts?.doubts ?? [])],
  };
  const made = recorded?.run_id == null || isMadeRunId(recorded.run_id);
  const trial_given = mapped?.trial_id != null || recorded?.trial_id != null;
  return { run, each, named: mapped?.run_id != null || !made, trial_given };
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
): Pick<RunSource, "scores" | "scores_source" | "reward_not_valid"> {
  const found = facts?.scores ?? new Map<string, Value>();
  if (!mapped || mapped.scores.size === 0) {
    const reward_not_valid = found.size === 0 ? null : (facts?.reward_not_valid ?? null);
    return { scores: [...found], scores_source: facts?.scores_source ?? null, reward_not_valid };
  }
  for (const [name, value] of mapped.scores) {
    if (found.has(name) && found.get(name) !== value) {
      conflicts.push(`score ${name}: ${value} (mapping file) and ${found.get(name)} (${facts?.scores_source})`);
    }
  }
  // Whoever gives a score in the place of the runner's, or where it had none, has judged the trial anew.
  const anew = found.size === 0 || [...mapped.scores.keys()].some((name) => found.has(name));
  const told = mapped.scores.get("reward_valid");
  const reward_not_valid =
    told === false ? "the mapping file says so" : anew || told === true ? null : (facts?.reward_not_valid ?? null);
  return { scores: [...new Map([...found, ...mapped.scores])], scores_source: "mapping file", reward_not_valid };
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
