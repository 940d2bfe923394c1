/** Pass two over a run: its samples with arrays, advantages and weights. */
import { assertSample, fillArrays } from "../build/arrays.js";
import type { AssembledRun, AssembledTrajectory } from "../build/assemble.js";
import type { PlannedSample } from "../build/build.js";
import { sampleTurns, trainedTemperature, trainedVersions } from "../build/sample-turns.js";
import { sampleWeight } from "../credit/credit.js";
import type { Policy } from "../recipe/policy.js";
import type { MadeRun, MadeSample, RunHead } from "../write/rollout-run.js";

export interface MakeContext {
  /** Log probabilities are float64 instead of float32. */
  wide: boolean;
  policy: Policy;
}

/** What credit decided for a run. */
export interface RunCredit {
  /** One advantage, or one per turn; null: none. */
  advantages: readonly number[] | null;
  per_turn: boolean;
}

/** The run with its samples. `head` is pass one's, with group and weight filled in. Throws `internal` when a promise is broken. */
export function makeRun(run: AssembledRun, head: RunHead, credit: RunCredit, context: MakeContext): MadeRun {
  const samples: MadeSample[] = [];
  let turnsBefore = 0;
  for (const trajectory of run.trajectories) {
    for (const planned of trajectory.built.samples) {
      samples.push(makeSample(planned, { trajectory, head, credit, turnsBefore, index: samples.length, ...context }));
    }
    turnsBefore += trajectory.evidence.turns.length;
  }
  return { head, samples };
}

function makeSample(
  planned: PlannedSample,
  at: {
    trajectory: AssembledTrajectory;
    head: RunHead;
    credit: RunCredit;
    turnsBefore: number;
    index: number;
  } & MakeContext,
): MadeSample {
  const { head, trajectory } = at;
  const arrays = fillArrays(planned, at.wide);
  const { trajectory_id } = trajectory.evidence;
  const turns = sampleTurns(planned, at.policy.select.sampling_defaults);
  assertSample(planned, arrays, `run ${head.run_id} sample ${at.index} (trajectory ${trajectory_id})`);
  return {
    sample_index: at.index,
    trajectory_id,
    segments: planned.segments,
    ...arrays,
    ...advantageOf(planned, at.credit, at.turnsBefore),
    weight: sampleWeight(head.weight, planned.trained_tokens, head.coverage.trained_tokens),
    finish_reason: planned.last.finish_reason,
    trained_tokens: planned.trained_tokens,
    temperature: trainedTemperature(planned, turns),
    ...trainedVersions(planned, turns),
    spans: planned.spans.map(({ start, end, kind, turn, reason }) => ({ start, end, kind, turn: turn.turn, reason })),
    turns,
  };
}

function advantageOf(
  planned: PlannedSample,
  credit: RunCredit,
  turnsBefore: number,
): Pick<MadeSample, "advantage" | "advantage_per_action"> {
  const { advantages } = credit;
  if (advantages === null) return { advantage: null, advantage_per_action: [] };
  if (!credit.per_turn) return { advantage: advantages[0]!, advantage_per_action: [] };
  const actions = planned.spans.filter((span) => span.kind === "action");
  return {
    advantage: null,
    advantage_per_action: actions.map((span) => advantages[turnsBefore + span.turn.turn]!),
  };
}
