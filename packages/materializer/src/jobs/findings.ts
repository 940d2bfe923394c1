/** What a reader of an output should know beside its counts: what was lost, what trains and may not be meant to, what splits conversations. Pure. */
import { relative, sep } from "node:path";
import type { AssembledRun, AssembledTrajectory } from "../build/assemble.js";
import { addFigures, type ContinuityFigures, continuityFigures, NO_FIGURES } from "../build/continuity-figures.js";
import { behaviourDoubt, untoldSettings } from "../build/sampling.js";
import { type SideCallSuspect, sideCallSuspects } from "../build/side-calls.js";
import { addCaptureLosses, type CaptureLoss, captureLosses } from "../read/capture-loss.js";
import { addVolatileCosts, type VolatileCost } from "../read/volatile-text.js";
import type { Policy } from "../recipe/policy.js";

/** A turn that looks like a side call and trains. `trajectory` is its directory, relative to the common parent of all trials. */
type ListedSuspect = SideCallSuspect & { run_id: string; trajectory: string };

export interface Findings {
  continuity: ContinuityFigures;
  capture_loss: CaptureLoss[];
  volatile_text: VolatileCost[];
  side_call_suspects: ListedSuspect[];
  /** Why log probabilities are not those of the sampled distribution → sampled tokens. */
  not_behaviour: Record<string, number>;
  /** Settings that nobody states for turns whose processed log probabilities train: whoever scores them again does not know how. */
  untold_sampling: string[];
  /** Turns of imported logs that train and do not say why they ended. */
  untold_finish_turns: number;
}

export interface FindingsContext {
  policy: Policy;
  run_id: string;
  /** Directories of the run's trajectories by their ids. */
  dirs: ReadonlyMap<string, string>;
  /** Directory that paths are told relative to. */
  root: string;
}

export function findingsOf(run: AssembledRun, context: FindingsContext): Findings {
  const evidence = run.trajectories.map((each) => each.evidence);
  const turns = run.trajectories.flatMap((each) => trainedTurns(each));
  const defaults = context.policy.select.sampling_defaults;
  const processed = turns.filter((turn) => turn.logprob_mode === "processed");
  return {
    continuity: run.trajectories.map(continuityFigures).reduce(addFigures, NO_FIGURES),
    capture_loss: captureLosses(evidence),
    volatile_text: addVolatileCosts(evidence.map((each) => each.volatile)),
    side_call_suspects: run.trajectories.flatMap((each) => suspectsIn(each, context)),
    not_behaviour: doubtsIn(run.trajectories, context.policy),
    untold_sampling: unique(processed.flatMap((turn) => untoldSettings(turn.sampling, defaults))),
    untold_finish_turns: turns.filter((turn) => turn.finish_reason === "unknown").length,
  };
}

function trainedTurns({ built }: AssembledTrajectory) {
  const spans = built.samples.flatMap((sample) => sample.spans);
  return [...new Set(spans.filter((span) => span.reason === "trained").map((span) => span.turn))];
}

function suspectsIn(one: AssembledTrajectory, context: FindingsContext): ListedSuspect[] {
  const dir = context.dirs.get(one.evidence.trajectory_id) ?? one.evidence.path;
  const trajectory = relative(context.root, dir).split(sep).join("/") || ".";
  return sideCallSuspects(one).map((suspect) => ({ run_id: context.run_id, trajectory, ...suspect }));
}

function doubtsIn(trajectories: readonly AssembledTrajectory[], policy: Policy): Record<string, number> {
  const doubts = new Map<string, number>();
  for (const { evidence } of trajectories) {
    for (const turn of evidence.turns) {
      const doubt = behaviourDoubt(turn, policy.select.sampling_defaults);
      if (doubt !== null) doubts.set(doubt, (doubts.get(doubt) ?? 0) + turn.sampled_ids.length);
    }
  }
  return sortedRecord(doubts);
}

/** Suspects listed in a manifest; all are counted. */
const SUSPECTS_MAX = 1000;

/** The findings of all runs together, as the manifest holds them. */
export function sumFindings(all: readonly Findings[]) {
  const doubts = new Map<string, number>();
  for (const { not_behaviour } of all)
    for (const [why, tokens] of Object.entries(not_behaviour)) doubts.set(why, (doubts.get(why) ?? 0) + tokens);
  const suspects = all.flatMap((each) => each.side_call_suspects);
  return {
    continuity: all.map((each) => each.continuity).reduce(addFigures, NO_FIGURES),
    capture_loss: addCaptureLosses(all.map((each) => each.capture_loss)),
    volatile_text: addVolatileCosts(all.map((each) => each.volatile_text)),
    side_calls: {
      turns: suspects.length,
      trained_tokens: suspects.reduce((sum, each) => sum + each.trained_tokens, 0),
      suspects: suspects.slice(0, SUSPECTS_MAX),
    },
    not_behaviour: sortedRecord(doubts),
    untold_sampling: unique(all.flatMap((each) => each.untold_sampling)),
    untold_finish_turns: all.reduce((sum, each) => sum + each.untold_finish_turns, 0),
  };
}
export type SummedFindings = ReturnType<typeof sumFindings>;

function sortedRecord(counts: ReadonlyMap<string, number>): Record<string, number> {
  return Object.fromEntries([...counts].sort(([a], [b]) => (a < b ? -1 : 1)));
}

const unique = (names: readonly string[]): string[] => [...new Set(names)].sort();
