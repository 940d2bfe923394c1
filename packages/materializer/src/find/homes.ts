/**
 * Which trial a trajectory belongs to. It is the one that it lies in, unless the mapping file or the trajectory itself names another trial that
 * was found: then that one, and the contradiction is told (docs/samples.md#runs-groups-attempts). Pure.
 */
import { basename, dirname } from "node:path";
import { isMadeRunId } from "@tito/format";
import { shortName } from "../read/order.js";
import type { FoundTrial } from "./discover.js";
import type { Identified } from "./run-source.js";
import { mappedOf, type RowIndex } from "./side-files.js";

/** A trajectory (null: a trial without any) and the trial whose result is about it. */
export interface Settled {
  trial: FoundTrial;
  each: Identified | null;
  conflicts: string[];
}

/** Trials by the names that their results say, else by their directories'. */
export class TrialNames {
  private readonly byName = new Map<string, FoundTrial[]>();
  private readonly byDir = new Map<string, FoundTrial>();

  constructor(trials: readonly FoundTrial[]) {
    for (const trial of trials.filter((each) => each.facts !== null)) {
      for (const name of calledBy(trial)) this.byName.set(name, [...(this.byName.get(name) ?? []), trial]);
      this.byDir.set(trial.dir, trial);
    }
  }

  /** The trial that `id` names, seen from `from`: `from` itself when it may be called so, else the only one, first within the same job. */
  named(id: string, from: FoundTrial): FoundTrial | null {
    const all = this.byName.get(id) ?? [];
    const near = all.filter((each) => dirname(each.dir) === dirname(from.dir));
    const named = all.includes(from) ? [from] : near.length > 0 ? near : all;
    if (named.length > 0) return named.length === 1 ? named[0]! : null;
    return id === basename(from.dir) || id === shortName(from.dir) ? from : null;
  }

  /** What is wrong when the result in a directory names the trial of the directory beside it; null when nothing is. */
  misplacedResult({ dir, facts }: FoundTrial): string | null {
    const name = facts?.trial_name ?? null;
    if (name === null || name === basename(dir) || !this.byDir.has(`${dirname(dir)}/${name}`)) return null;
    return `the result in ${shortName(dir)} is that of ${name}, which is another directory`;
  }
}

function calledBy({ dir, facts }: FoundTrial): string[] {
  return facts?.trial_name != null ? [facts.trial_name] : [basename(dir), shortName(dir)];
}

/** Every trajectory with its trial, and every trial that is left without one. */
export function settle(
  trials: readonly FoundTrial[],
  identify: (dir: string) => Identified,
  rewards: RowIndex | null,
): Settled[] {
  const names = new TrialNames(trials);
  const settled = trials.flatMap((trial) =>
    trial.trajectories.map((dir) => home(trial, identify(dir), names, rewards)),
  );
  const inhabited = new Set(settled.map((each) => each.trial));
  const empty = trials.filter((trial) => !inhabited.has(trial));
  const order = new Map(trials.map((trial, i) => [trial, i]));
  return [...settled, ...empty.map((trial) => ({ trial, each: null, conflicts: problemsOf(trial, names) }))].sort(
    (a, b) => order.get(a.trial)! - order.get(b.trial)!,
  );
}

function home(trial: FoundTrial, each: Identified, names: TrialNames, rewards: RowIndex | null): Settled {
  if (trial.facts === null) return { trial, each, conflicts: [] };
  const claims = claimsOf(each, rewards).flatMap(([what, id]) => {
    const named = names.named(id, trial);
    return named === null ? [] : [{ what, id, named }];
  });
  const chosen = claims[0]?.named ?? trial;
  const conflicts = claims
    .filter((claim) => claim.named !== trial || claim.named !== chosen)
    .map(
      ({ what, id }) =>
        `${what}: ${id} is the name of another trial than that in which trajectory ${each.trajectory_id} lies (${shortName(trial.dir)}); the result in ${shortName(chosen.dir)} is used`,
    );
  return { trial: chosen, each, conflicts: [...conflicts, ...problemsOf(chosen, names)] };
}

function problemsOf(trial: FoundTrial, names: TrialNames): string[] {
  return [...(trial.facts?.problems ?? []), ...[names.misplacedResult(trial)].filter((text) => text !== null)];
}

/** Ids that may name a trial, in the order in which they count. A run id that was made names none. */
function claimsOf(each: Identified, rewards: RowIndex | null): [what: string, id: string][] {
  const { trial_id, run_id } = each.identity;
  const path = [basename(each.dir), shortName(each.dir), each.dir];
  const rows = rewards?.find({ trajectory_id: [each.trajectory_id], trial_id: [], run_id: "", path }) ?? [];
  const mapped = rows.length === 0 ? null : mappedOf(rows).trial_id;
  const claims: [string, string | null][] = [
    ["trial_id (mapping file)", mapped],
    ["trial_id (recorded)", trial_id],
    ["run_id (recorded)", run_id !== null && isMadeRunId(run_id) ? null : run_id],
    ["trajectory_id", each.trajectory_id],
  ];
  return claims.filter((claim): claim is [string, string] => claim[1] !== null);
}
