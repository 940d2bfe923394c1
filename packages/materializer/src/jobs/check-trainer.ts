/** `--check-for`: what a trainer cannot express, found before anything is written. Pure. */
import { TitoError } from "@tito/format";
import type { PlannedSample } from "../build/build.js";
import { sampleTurns, trainedVersions } from "../build/sample-turns.js";
import { FILLED_IN, type SamplingDefaults, type SamplingSetting } from "../recipe/sampling-settings.js";
import { TRAINER_RULES, TRAINERS, type Trainer, type TrainerRule } from "../recipe/trainers.js";

/** What the rules ask about one sample. */
export interface TrainerFacts {
  /** Temperatures of its trained turns, each once; null: not on record. */
  temperatures: (number | null)[];
  /** A trained turn had a filter or a penalty. */
  filtered: boolean;
  /** Every trained token has a version with a number. */
  versioned: boolean;
}

/** A run as the rules see it. `samples` are those that train, by their index. */
export interface CheckedRun {
  run_id: string;
  group_id: string;
  per_action: boolean;
  samples: { index: number; facts: TrainerFacts }[];
  has_advantage: boolean;
}

const FILTERS = Object.keys(FILLED_IN).filter((name) => name !== "temperature") as SamplingSetting[];

/** Facts of a sample; null when nothing of it trains. */
export function trainerFacts(sample: PlannedSample, defaults: SamplingDefaults): TrainerFacts | null {
  if (sample.trained_tokens === 0) return null;
  const all = sampleTurns(sample, defaults);
  const trained = new Set(sample.spans.filter((span) => span.reason === "trained").map((span) => span.turn.turn));
  const turns = all.filter(({ turn }) => trained.has(turn));
  const reshaped = (name: SamplingSetting, value: number | null) =>
    value !== null && !(FILLED_IN[name] as readonly number[]).includes(value);
  return {
    temperatures: [...new Set(turns.map(({ temperature }) => temperature))],
    filtered: turns.some((turn) => FILTERS.some((name) => reshaped(name, turn[name]))),
    versioned: trainedVersions(sample, all).version_min !== null,
  };
}

/** @throws TitoError `cannot_express` with each broken rule, the rows that break it and what helps. `runs`: those that train. */
export function checkTrainer(trainer: Trainer, runs: readonly CheckedRun[]): void {
  if (runs.length === 0) {
    throw new TitoError("cannot_express", `${trainer}: no run can train`, {
      hint: "without --check-for, tito materialize reports why each run is left out",
    });
  }
  const problems = TRAINERS[trainer].flatMap((rule) => {
    const rows = BROKEN[rule](runs);
    const { says, helps } = TRAINER_RULES[rule];
    return rows.length === 0 ? [] : [`${says} (${some(rows)}); ${helps}`];
  });
  if (problems.length === 0) return;
  throw new TitoError("cannot_express", `${trainer} cannot express these samples: ${problems.join("; ")}`, {
    hint: "nothing was written; docs/trainers.md has what each trainer takes",
  });
}

const SHOWN = 3;

function some(rows: readonly string[]): string {
  const names = [...new Set(rows)];
  const more = names.length > SHOWN ? ` and ${names.length - SHOWN} more` : "";
  return names.slice(0, SHOWN).join(", ") + more;
}

const BROKEN: Record<TrainerRule, (runs: readonly CheckedRun[]) => string[]> = {
  one_temperature: (runs) => {
    const first = new Map<number, string>();
    for (const { name, facts } of samplesOf(runs))
      for (const value of facts.temperatures) if (value !== null && !first.has(value)) first.set(value, name);
    if (first.size < 2) return [];
    return [...first].sort(([a], [b]) => a - b).map(([value, name]) => `${name} at ${value}`);
  },
  known_temperature: (runs) => named(runs, (facts) => facts.temperatures.includes(null)),
  no_filters: (runs) => named(runs, (facts) => facts.filtered),
  numeric_version: (runs) => named(runs, (facts) => !facts.versioned),
  scalar_advantage: (runs) => runs.filter((run) => run.per_action).map((run) => `run ${run.run_id}`),
  has_advantage: (runs) => runs.filter((run) => !run.has_advantage).map((run) => `run ${run.run_id}`),
  one_sample_per_run: (runs) =>
    runs.filter((run) => run.samples.length > 1).map((run) => `run ${run.run_id} has ${run.samples.length}`),
  full_groups: raggedGroups,
};

function samplesOf(runs: readonly CheckedRun[]): { name: string; facts: TrainerFacts }[] {
  return runs.flatMap((run) =>
    run.samples.map(({ index, facts }) => ({ name: `run ${run.run_id} sample ${index}`, facts })),
  );
}

function named(runs: readonly CheckedRun[], broken: (facts: TrainerFacts) => boolean): string[] {
  return samplesOf(runs)
    .filter(({ facts }) => broken(facts))
    .map(({ name }) => name);
}

function raggedGroups(runs: readonly CheckedRun[]): string[] {
  const sizes = new Map<string, number>();
  for (const { group_id } of runs) sizes.set(group_id, (sizes.get(group_id) ?? 0) + 1);
  const counts = new Map<number, number>();
  for (const size of sizes.values()) counts.set(size, (counts.get(size) ?? 0) + 1);
  if (counts.size < 2) return [];
  const usual = [...counts].reduce((best, each) => (each[1] > best[1] ? each : best))[0];
  return [...sizes]
    .filter(([, size]) => size !== usual)
    .map(([group, size]) => `group ${group} has ${size}, others ${usual}`);
}
