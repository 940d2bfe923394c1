/** Pass one over a run: everything about it but its arrays. What credit needs is known after this. */
import { type Dirent, existsSync, lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { type AssembledRun, assembleRun } from "../build/assemble.js";
import { groupOf, judge, type RunFacts, runNames } from "../credit/reward.js";
import { rewardsOf } from "../credit/turn-rewards.js";
import type { RunSource } from "../find/run-source.js";
import { endingOf } from "../find/termination.js";
import type { EvidenceTurn, InputFile, TrajectoryEvidence } from "../read/evidence.js";
import type { ModelFacts } from "../read/model-facts.js";
import { compareText } from "../read/order.js";
import { digestFile, digestFiles, inputFiles, isForbidden } from "../read/read.js";
import { restartWarning } from "../read/restarts.js";
import { addToolUse, NO_TOOL_USE, type ToolUse, toolUseOf } from "../read/tool-use.js";
import { versionNumbers } from "../read/versions.js";
import { canonicalJson } from "../recipe/canonical-json.js";
import type { Policy } from "../recipe/policy.js";
import type { RunHead } from "../write/rollout-run.js";
import { type TrainerFacts, trainerFacts } from "./check-trainer.js";
import { type Findings, findingsOf } from "./findings.js";

/** What pass one tells about a run. `head.group` and `head.weight` are filled in by credit. */
export interface RunSurvey {
  head: RunHead;
  /** One reward, or one per turn; null while unknown. */
  rewards: number[] | null;
  samples: { tokens: number; trained_tokens: number; action_spans: number; trainer: TrainerFacts | null }[];
  /** Recorded log probabilities that float32 does not hold exactly. */
  beyond_float32: number;
  models: ModelFacts[];
  uncaptured: [string, number][];
  dangling_calls: number;
  unsealed: number;
  tool_use: ToolUse;
  findings: Findings;
  /** Trajectories in which the agent seems to have been started again, in words. */
  restarts: string[];
  inputs: InputFile[];
}

export interface SurveyContext {
  policy: Policy;
  /** Directory that input paths are relative to. */
  root: string;
}

/** Newest weight version of a run as a number, null when none is one. */
export function newestVersionOf(source: RunSource, policy: Policy): number | null {
  const { trajectories } = assembleRun(
    source,
    { ...policy, select: { ...policy.select, max_version_age: null } },
    null,
  );
  const numbers = trajectories
    .flatMap(({ evidence }) =>
      evidence.turns.flatMap((turn) =>
        turn.weight_versions.map((span) => versionNumbers(span.version)?.newest ?? null),
      ),
    )
    .filter((version) => version !== null);
  return numbers.length > 0 ? numbers.reduce((a, b) => Math.max(a, b)) : null;
}

export function surveyRun(run: AssembledRun, source: RunSource, context: SurveyContext): RunSurvey {
  const { policy } = context;
  const evidence = run.trajectories.map((each) => each.evidence);
  const files = policy.output.evidence ? evidenceFiles(source) : [];
  const ending = endingOf(evidence, {
    failure: source.facts?.failure ?? null,
    finished: source.facts?.kind === "harbor",
  });
  const turns = evidence.reduce((sum, each) => sum + each.turns.length, 0);
  const samples = run.trajectories.flatMap(({ built }) => built.samples.map((sample) => sampleFacts(sample, policy)));
  const { run_id, trial_id, attempt } = source;
  const task = taskOf(source);
  const names = {
    run_id,
    trial_id,
    group_id: source.group_id,
    task: task.id,
    attempt,
    termination: ending.termination,
  };
  const facts: RunFacts = {
    scores: new Map(source.scores),
    metadata: new Map(source.metadata),
    run: runNames({ ...names, turns, samples: samples.length, coverage: run.coverage }),
    evidence: files.map((file) => file.path),
  };
  const verdict = judge(facts, policy, {
    excluded: tamperingOf(evidence) ?? source.excluded,
    termination: ending.termination,
    reward_not_valid: source.reward_not_valid !== null,
  });
  const group_id = groupOf(facts, policy.credit.group, run_id);
  const { rewards, problems } = rewardsOf(source, evidence, verdict.reward);
  const recorded = recordedFacts(source, evidence);
  return {
    head: {
      schema: "tito.rollout_run/v1",
      run_id,
      group_id,
      trial_id,
      attempt,
      ...recorded,
      conflicts: [...recorded.conflicts, ...problems],
      task,
      metadata: Object.fromEntries(source.metadata),
      environment: environmentOf(source),
      scores: Object.fromEntries(source.scores),
      scores_source: source.scores_source,
      reward_rule: policy.reward,
      reward: verdict.reward,
      turn_rewards: source.turn_rewards === null ? null : rewards,
      credit_rule: policy.credit.rule,
      group: { group_id, size: 1, counted: 0, mean: null, std: null, flags: [] },
      weight: 0,
      termination: ending.termination,
      termination_detail: ending.detail,
      excluded: verdict.excluded,
      coverage: run.coverage,
      outside: outsideOf(run),
      turns,
      evidence: files,
    },
    rewards,
    samples,
    ...countsOf(evidence),
    findings: findingsOf(run, {
      policy,
      run_id,
      dirs: new Map(source.trajectories.map((each) => [each.trajectory_id, each.dir])),
      root: context.root,
    }),
    inputs: source.trajectories.flatMap(({ dir }) => inputFiles(dir, context.root)),
  };
}

/** What is counted, gathered or warned about over the trajectories, whatever the run is worth. */
function countsOf(evidence: readonly TrajectoryEvidence[]) {
  return {
    models: evidence.flatMap((each) => each.models),
    beyond_float32: evidence.reduce((sum, each) => sum + each.turns.reduce((n, turn) => n + beyondFloat32(turn), 0), 0),
    uncaptured: evidence.flatMap((each) => [...each.uncaptured]),
    dangling_calls: evidence.reduce((sum, each) => sum + each.dangling_calls, 0),
    tool_use: evidence.map((each) => toolUseOf(each.turns)).reduce(addToolUse, NO_TOOL_USE),
    restarts: evidence.flatMap((each) => restartWarning(each.trajectory_id, each.turns) ?? []),
    unsealed: evidence.filter((each) => !each.sealed).length,
  };
}

/** Float64 is recorded only where some value of the turn needs it. */
function beyondFloat32({ logprobs }: EvidenceTurn): number {
  if (!(logprobs instanceof Float64Array)) return 0;
  return logprobs.reduce(
    (count, value) => (Number.isFinite(value) && Math.fround(value) !== value ? count + 1 : count),
    0,
  );
}

function sampleFacts(sample: AssembledRun["trajectories"][number]["built"]["samples"][number], policy: Policy) {
  const action_spans = sample.spans.filter((span) => span.kind === "action").length;
  const trainer = trainerFacts(sample, policy.select.sampling_defaults);
  return { tokens: sample.length, trained_tokens: sample.trained_tokens, action_spans, trainer };
}

/** Ids and settings that the trajectories recorded. A setting that changed within the run is told under `conflicts`. */
function recordedFacts(source: RunSource, evidence: readonly TrajectoryEvidence[]) {
  const engine = evidence.find((each) => each.engine !== null)?.engine ?? null;
  const modes = [...new Set(evidence.flatMap((each) => each.prompt_modes))];
  const contracts = [...new Set(evidence.flatMap((each) => each.renderer_contracts))];
  const turns = evidence.flatMap((each) => each.turns);
  const versions = new Set(turns.flatMap((turn) => turn.weight_versions.map((span) => span.version)));
  const spelled = new Set(turns.map((turn) => JSON.stringify(turn.sampling)));
  const settings = new Set([...spelled].map((text) => canonicalJson(JSON.parse(text))));
  const changed = contracts.length > 1 ? [`renderer_contract: ${contracts.join(" then ")}`] : [];
  const mode = modes.length > 1 ? "mixed" : (modes[0] ?? null);
  return {
    trajectory_ids: evidence.map((each) => each.trajectory_id),
    model: engine?.model ?? null,
    engine: engine === null ? null : { kind: engine.kind, version: engine.version },
    prompt_mode: mode as RunHead["prompt_mode"],
    renderer_contract: contracts.at(-1) ?? null,
    weight_versions: [...versions],
    sampling: [...settings].sort(compareText).map((text) => JSON.parse(text) as Record<string, unknown>),
    conflicts: [...source.conflicts, ...changed],
  };
}

function taskOf(source: RunSource): RunHead["task"] {
  const metadata = new Map(source.metadata);
  const instruction = join(source.trial_dir, "instruction.md");
  const sha256 = existsSync(instruction) ? digestFile(instruction, source.trial_dir).sha256 : null;
  return {
    id: source.facts?.task.id ?? metadata.get("task") ?? null,
    source: source.facts?.task.source ?? metadata.get("task_source") ?? null,
    instruction_sha256: metadata.get("instruction_sha256") ?? sha256,
  };
}

function environmentOf(source: RunSource): RunHead["environment"] {
  const metadata = new Map(source.metadata);
  return {
    kind: source.facts?.environment.kind ?? metadata.get("environment") ?? null,
    image: source.facts?.environment.image ?? metadata.get("image") ?? null,
    sandbox_id: metadata.get("sandbox_id") ?? null,
  };
}

/** No recipe lets a run train whose record was changed. */
function tamperingOf(evidence: readonly TrajectoryEvidence[]): string | null {
  return evidence.some((each) => each.tampered !== null) ? "capture_tampered" : null;
}

function outsideOf(run: AssembledRun): RunHead["outside"] {
  return run.trajectories.flatMap(({ evidence, built }) =>
    built.outside.map(({ turn, tokens, reason }) => ({ trajectory_id: evidence.trajectory_id, turn, tokens, reason })),
  );
}

const EVIDENCE_FILES_MAX = 10_000;
const TRIAL_FILES = ["result.json", "config.json", "exception.txt", "reward.json", "reward.txt"];

/** Verifier output, artifacts and results of a trial with their digests; the trajectories themselves are listed as inputs. */
function evidenceFiles(source: RunSource): InputFile[] {
  if (source.facts === null) return [];
  const root = source.trial_dir;
  const skip = new Set(source.trajectories.map((each) => each.dir));
  const paths = TRIAL_FILES.map((name) => join(root, name)).filter(
    (path) => existsSync(path) && lstatSync(path).isFile(),
  );
  for (const name of ["verifier", "artifacts"]) collect(join(root, name), paths, skip);
  const files = digestFiles(paths.slice(0, EVIDENCE_FILES_MAX), root);
  return files.sort((a, b) => compareText(a.path, b.path));
}

function collect(dir: string, paths: string[], skip: ReadonlySet<string>): void {
  if (!existsSync(dir) || skip.has(dir) || !lstatSync(dir).isDirectory()) return;
  for (const entry of entriesOf(dir)) {
    if (paths.length >= EVIDENCE_FILES_MAX) return;
    const path = join(dir, entry.name);
    if (entry.isDirectory()) collect(path, paths, skip);
    else if (entry.isFile()) paths.push(path);
  }
}

function entriesOf(dir: string): Dirent[] {
  try {
    return readdirSync(dir, { withFileTypes: true }).sort((a, b) => compareText(a.name, b.name));
  } catch (error) {
    if (isForbidden(error)) return [];
    throw error;
  }
}

/** Key of a run in maps and in a shard's list. */
export function runKey(head: Pick<RunHead, "run_id" | "trial_id" | "attempt">): string {
  return JSON.stringify([head.run_id, head.trial_id, head.attempt]);
}
