/** One trial, one life: which runs are attempts of one trial, and which of them counts. docs/samples.md#attempts has the rules. Pure. */
import type { Lived, RunSource } from "./run-source.js";

/** A run with what decides whether another one is a later life of the same trial. */
export interface Draft {
  run: RunSource;
  /** A flag or the mapping file gave its run id, so that only equal ids join it to others. */
  named: boolean;
  /** A flag or the mapping file gave its trial id. */
  trial_given: boolean;
  lived: () => Lived | null;
}

/** Items that were alive at the same time together, the oldest first. One whose time is unknown joins the last. */
export function livesOf<T>(items: readonly T[], lived: (item: T) => Lived | null): T[][] {
  if (items.length < 2) return items.length === 0 ? [] : [[...items]];
  const timed = items.map((item, i) => ({ item, i, time: lived(item) }));
  const sorted = timed
    .filter((each) => each.time !== null)
    .sort((a, b) => a.time!.first_ms - b.time!.first_ms || a.i - b.i);
  const lives: (typeof timed)[] = [];
  let end = Number.NEGATIVE_INFINITY;
  for (const each of sorted) {
    if (lives.length === 0 || each.time!.first_ms > end) lives.push([]);
    lives.at(-1)!.push(each);
    end = Math.max(end, each.time!.last_ms);
  }
  if (lives.length === 0) lives.push([]);
  lives.at(-1)!.push(...timed.filter((each) => each.time === null));
  return lives.map((life) => life.sort((a, b) => a.i - b.i).map((each) => each.item));
}

const SUPERSEDED = "superseded_by_";

/** True for the exclusion of an older attempt. */
export function isSuperseded(excluded: string | null): boolean {
  return excluded?.startsWith(SUPERSEDED) ?? false;
}

/** Of the runs of one trial the newest attempt counts, of equal attempts the later life; the others are kept and marked. */
export function supersede(drafts: readonly Draft[]): void {
  for (const trial of sameTrial(drafts)) {
    if (trial.length < 2) continue;
    const newest = trial.reduce((max, { run }) => Math.max(max, run.attempt), 0);
    for (const { run } of trial) if (run.attempt < newest) run.excluded = `${SUPERSEDED}attempt_${newest}`;
    supersedeByTime(trial.filter(({ run }) => run.attempt === newest));
  }
}

function supersedeByTime(drafts: readonly Draft[]): void {
  for (const one of drafts) {
    const others = drafts.filter((other) => other !== one && areTied(one, other));
    const later = others.find((other) => isBefore(one, other));
    if (later !== undefined) {
      one.run.excluded = `${SUPERSEDED}later_run`;
      later.run.warnings.push(
        `the trial ${later.run.trial_id} was run again: ${later.run.run_id} counts, ${one.run.run_id} was recorded before it and does not`,
      );
    } else if (others.some((other) => !isBefore(other, one)))
      one.run.warnings.push(
        `other runs of the trial ${one.run.trial_id} were recorded at the same time; each trains as a run of its own`,
      );
  }
}

/** Runs that ids or one result join; two that the user gave run ids of their own are joined by one result only. */
function areTied(a: Draft, b: Draft): boolean {
  return sharesResult(a.run, b.run) || (!a.named && !b.named);
}

function sharesResult(a: RunSource, b: RunSource): boolean {
  return a.facts !== null && a.trial_dir === b.trial_dir && a.facts.steps < 2;
}

function isBefore(a: Draft, b: Draft): boolean {
  const [first, second] = [a.lived(), b.lived()];
  return first !== null && second !== null && first.last_ms < second.first_ms;
}

/** Runs by trial: equal trial ids that were given, one trial directory with a result, or equal run and trial ids, transitively. */
function sameTrial(drafts: readonly Draft[]): Draft[][] {
  const parents = new Map<string, string>();
  const rootOf = (key: string): string => {
    let root = key;
    for (let up = parents.get(root); up !== undefined; up = parents.get(root)) root = up;
    return root;
  };
  const join = (a: string, b: string): void => {
    const [from, to] = [rootOf(a), rootOf(b)];
    if (from !== to) parents.set(from, to);
  };
  for (const draft of drafts) for (const key of keysOf(draft)) join(key, keysOf(draft)[0]!);
  const groups = new Map<string, Draft[]>();
  for (const draft of drafts) {
    const root = rootOf(keysOf(draft)[0]!);
    groups.set(root, [...(groups.get(root) ?? []), draft]);
  }
  return [...groups.values()];
}

function keysOf({ run, trial_given }: Draft): string[] {
  return [
    JSON.stringify(["run", run.run_id, run.trial_id]),
    ...(trial_given ? [JSON.stringify(["trial", run.trial_id])] : []),
    ...(run.facts === null ? [] : [JSON.stringify(["dir", run.trial_dir])]),
  ];
}
