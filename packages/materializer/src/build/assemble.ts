/** Read → select → build for one run: what both passes start with. */
import { basename } from "node:path";
import type { RunSource } from "../find/run-source.js";
import type { TrajectoryEvidence } from "../read/evidence.js";
import { readEvidence } from "../read/read.js";
import type { Policy } from "../recipe/policy.js";
import { type BuiltTrajectory, buildSamples } from "./build.js";
import { addCoverage, type Coverage, coverageOf, emptyCoverage } from "./coverage.js";
import { selectTurns } from "./select.js";

/** One trajectory of a run, from evidence to planned samples. */
export interface AssembledTrajectory {
  evidence: TrajectoryEvidence;
  built: BuiltTrajectory;
}

export interface AssembledRun {
  trajectories: AssembledTrajectory[];
  coverage: Coverage;
}

export function assembleRun(source: RunSource, policy: Policy, newestVersion: number | null): AssembledRun {
  const evidence = source.trajectories.map(({ dir }) => readEvidence(dir, basename(dir), policy.lane_rules));
  return assembleEvidence(evidence, policy, newestVersion);
}

/** Trajectories in the order in which their first turns finished, so that a restarted agent's calls follow the first one's. */
export function assembleEvidence(
  evidence: readonly TrajectoryEvidence[],
  policy: Policy,
  newestVersion: number | null,
): AssembledRun {
  const firstMs = (each: TrajectoryEvidence) => each.turns[0]?.finished_ms ?? Number.MAX_SAFE_INTEGER;
  const ordered = evidence
    .map((each, i) => ({ each, i }))
    .sort((a, b) => firstMs(a.each) - firstMs(b.each) || a.i - b.i);
  let coverage = emptyCoverage();
  const trajectories = ordered.map(({ each }) => {
    const verdicts = selectTurns(each, { policy: policy.select, newestVersion });
    const built = buildSamples(each, verdicts, policy.build);
    coverage = addCoverage(coverage, coverageOf(each, built));
    return { evidence: each, built };
  });
  return { trajectories, coverage };
}
