/** The command's whole way: find, survey, credit, write, manifest. */
import { existsSync, realpathSync } from "node:fs";
import { join } from "node:path";
import type { Writable } from "node:stream";
import { FORMAT_VERSION, TitoError } from "@tito/format";
import { findTrials } from "../find/discover.js";
import { identify } from "../find/identify.js";
import { runsOf } from "../find/identity.js";
import type { RunSource, SideFiles } from "../find/run-source.js";
import { openSideFile } from "../find/side-files.js";
import { commonParent } from "../read/order.js";
import { digestFile } from "../read/read.js";
import { toolWarning } from "../read/tool-use.js";
import { loadPolicy, type Policy, policyDigest } from "../recipe/policy.js";
import type { Trainer } from "../recipe/trainers.js";
import { type ByteTarget, FileTarget, StreamTarget } from "../write/byte-target.js";
import type { Format } from "../write/encoded-run.js";
import { manifestPath, type OutputFile, type OutputManifest } from "../write/output-manifest.js";
import { type Place, placeOf, refuseInput } from "../write/output-place.js";
import { encodesRuns, openSink } from "../write/row-sink.js";
import { closeShards, noteShard, openShards } from "../write/shards.js";
import { checkTrainer } from "./check-trainer.js";
import { findingWarnings } from "./finding-warnings.js";
import { type JobShard, shardRuns } from "./job-shard.js";
import { Jobs } from "./jobs.js";
import { MATERIALIZER_VERSION, type PlannedFile, type PlannedRun, planFiles, planRuns } from "./plan.js";
import type { RunSurvey } from "./survey.js";
import { tallyRuns } from "./tally.js";
import type { Task } from "./tasks.js";
import { warningsOf } from "./warnings.js";

export interface Progress {
  phase: "find" | "versions" | "survey" | "write";
  done: number;
  total: number;
  /** Tokens of the samples that this phase has gone through. */
  tokens: number;
}

/** Which runs a command is about. */
export interface RunPaths {
  /** Trial, job or trajectory directories. */
  paths: readonly string[];
  /** Files about runs: rewards, exclusions, rewards of turns. */
  rewards?: string | undefined;
  exclusions?: string | undefined;
  turnRewards?: string | undefined;
}

export interface MaterializeOptions extends RunPaths {
  /** A file, a directory of shards (an existing directory, or a name that ends with `/`), or `-` for `stdout`. */
  out: string;
  /** By the suffix of `out` when not given; `parquet` for a directory, `jsonl` for `-`. */
  format?: Format | undefined;
  policy?: Policy | undefined;
  /** Worker threads; the output does not depend on it. */
  jobs?: number | undefined;
  /** Keep the shards of an earlier run whose plan is unchanged. Directories only. */
  resume?: boolean | undefined;
  /** Refuse, before anything is written, what this trainer cannot express. */
  checkFor?: Trainer | undefined;
  onProgress?: ((progress: Progress) => void) | undefined;
  stdout?: Writable | undefined;
  /** Only this share of the groups; the shares together hold the rows of the whole. */
  shard?: JobShard | undefined;
}

/** The manifest, and what is not in it because it differs from call to call. */
export interface Report {
  manifest: OutputManifest;
  /** Null when the output is a stream. */
  manifest_path: string | null;
  /** Names of the shards that an earlier run left as they have to be. */
  kept: string[];
  runs: RunLine[];
  /** Runs with a trajectory that is not sealed: still being written, or its recorder was killed. What they hold so far is in the output. */
  unsealed: string[];
}

/** A run in the report's table. */
export type RunLine = Pick<
  PlannedRun["head"],
  "run_id" | "trial_id" | "group_id" | "reward" | "termination" | "excluded" | "turns" | "coverage" | "weight"
> & { samples: number; advantage: number | null };

interface Job {
  options: MaterializeOptions;
  policy: Policy;
  place: Place;
  jobs: Jobs;
}

/**
 * Materializes trials into samples.
 * Errors: `not_found` without any trial, `usage` for flags and side files, `cannot_write`, `already_exists` for a directory that is not ours.
 * After an error nothing of a single output is visible, and finished shards stay for `resume`.
 */
export async function materialize(options: MaterializeOptions): Promise<Report> {
  const policy = options.policy ?? loadPolicy(null);
  const place = placeOf(options);
  options.onProgress?.({ phase: "find", done: 0, total: 0, tokens: 0 });
  const { sources: all, files, trials } = findRuns(options);
  refuseInput(place, { files: sideFiles(options), trials: all });
  const sources = options.shard === undefined ? all : shardRuns(all, options.shard, policy);
  const jobs = new Jobs(Math.max(1, Math.min(options.jobs ?? 1, sources.length, 64)));
  try {
    const job: Job = { options, policy, place, jobs };
    const root = commonParent(all.map((source) => source.trial_dir));
    const newestVersion = await newestOf(job, sources);
    const surveys = await surveyAll(job, sources, { root, newestVersion });
    const wide = policy.output.logprobs === "float64";
    const runs = planRuns(sources, surveys, policy);
    if (options.checkFor !== undefined) checkRuns(options.checkFor, runs, surveys, policy);
    const planned = planFiles(runs, { ...place, policy, wide, newestVersion });
    const earlier = place.directory ? openShards(place.path!, options.resume === true) : [];
    const { outputs, kept } = await writeFiles(job, planned, { earlier, wide, newestVersion });
    const tally = tallyRuns(
      surveys.map((survey, i) => ({ ...survey, head: runs[i]!.head })),
      trials,
    );
    const manifest: OutputManifest = {
      schema: "tito.materialized/v1",
      format: place.format,
      packed: policy.pack.max_tokens !== null,
      wide_logprobs: wide,
      logprobs_rounded: wide ? 0 : surveys.reduce((sum, survey) => sum + survey.beyond_float32, 0),
      newest_version: newestVersion,
      versions: { materializer: MATERIALIZER_VERSION, format: FORMAT_VERSION },
      policy_sha256: policyDigest(policy),
      policy,
      ...tally,
      warnings: [
        ...findingWarnings(tally.findings),
        ...toolWarnings(surveys),
        ...surveys.flatMap(({ head, restarts }) => restarts.map((text) => `run ${head.run_id}: ${text}`)),
        ...warningsOf(
          runs.map((run) => run.head),
          sources,
          files,
          policy,
        ),
      ],
      outputs,
      inputs: [...surveys.flatMap((survey) => survey.inputs), ...sideInputs(options, root)],
    };
    const manifest_path = await finishOutput(place, manifest);
    return {
      manifest,
      manifest_path,
      kept,
      runs: runs.map((run, i) => runLine(run, surveys[i]!)),
      unsealed: unsealedRuns(surveys),
    };
  } finally {
    await jobs.close();
  }
}

/** The runs that train, as the trainer's rules see them. */
function checkRuns(trainer: Trainer, runs: readonly PlannedRun[], surveys: readonly RunSurvey[], policy: Policy): void {
  if (policy.pack.max_tokens !== null) {
    throw new TitoError("usage", "--check-for looks at samples, and packed rows hold several", {
      hint: "leave --pack-max-tokens out; trainers pack by themselves",
    });
  }
  const checked = runs.flatMap(({ head, credit }, i) => {
    if (head.weight === 0) return [];
    const samples = surveys[i]!.samples.flatMap(({ trainer: facts }, index) =>
      facts === null ? [] : [{ index, facts }],
    );
    const { run_id, group_id } = head;
    return [{ run_id, group_id, per_action: credit.per_turn, samples, has_advantage: credit.advantages !== null }];
  });
  checkTrainer(trainer, checked);
}

/**
 * All runs below the paths. A trajectory whose ids cannot be read is named by its directory: its evidence says what is wrong with it.
 * Errors: `not_found` without any trial, `usage` for side files.
 */
export function findRuns(options: RunPaths) {
  const trials = findTrials(options.paths);
  if (trials.length === 0) {
    throw new TitoError("not_found", `no trial and no trajectory below ${options.paths.join(", ")}`, {
      hint: "a trajectory is a directory with segments/*.seg; a trial has a result.json or a reward.json",
    });
  }
  const files: SideFiles = {
    rewards: openSideFile(options.rewards, "rewards"),
    exclusions: openSideFile(options.exclusions, "exclusions"),
    turnRewards: openSideFile(options.turnRewards, "turn_rewards"),
  };
  const sources = runsOf(trials, identify, files);
  return { sources, files, trials: trials.length };
}

async function newestOf(job: Job, sources: readonly RunSource[]): Promise<number | null> {
  const { policy } = job;
  if (policy.select.max_version_age === null) return null;
  if (policy.select.current_version !== null) return policy.select.current_version;
  let newest: number | null = null;
  let done = 0;
  for await (const version of job.jobs.run<"newest">(
    sources.map((source, slot) => ({ kind: "newest", slot, source, policy })),
  )) {
    if (version !== null) newest = Math.max(version, newest ?? version);
    done += 1;
    job.options.onProgress?.({ phase: "versions", done, total: sources.length, tokens: 0 });
  }
  return newest;
}

async function surveyAll(
  job: Job,
  sources: readonly RunSource[],
  given: { root: string; newestVersion: number | null },
): Promise<RunSurvey[]> {
  const surveys: RunSurvey[] = [];
  let tokens = 0;
  const tasks = sources.map(
    (source, slot): Extract<Task, { kind: "survey" }> => ({
      kind: "survey",
      slot,
      source,
      policy: job.policy,
      ...given,
    }),
  );
  for await (const survey of job.jobs.run<"survey">(tasks)) {
    surveys.push(survey);
    for (const sample of survey.samples) tokens += sample.tokens;
    job.options.onProgress?.({ phase: "survey", done: surveys.length, total: sources.length, tokens });
  }
  return surveys;
}

interface WriteContext {
  earlier: readonly OutputFile[];
  wide: boolean;
  newestVersion: number | null;
}

async function writeFiles(job: Job, planned: readonly PlannedFile[], context: WriteContext) {
  const outputs: OutputFile[] = [];
  const kept: string[] = [];
  const progress = { done: 0, total: planned.reduce((sum, file) => sum + file.runs.length, 0), tokens: 0 };
  for (const file of planned) {
    const same = keptFile(job.place, file, context.earlier);
    if (same) kept.push(same.path);
    const output = same ?? (await writeFile(job, file, context, progress));
    outputs.push(output);
    if (job.place.directory) noteShard(job.place.path!, output);
    if (same) progress.done += file.runs.length;
  }
  return { outputs, kept };
}

/** The earlier output of an unchanged plan, when its bytes are still the same. */
function keptFile(place: Place, file: PlannedFile, earlier: readonly OutputFile[]): OutputFile | null {
  const before = earlier.find((each) => each.path === file.name && each.plan_sha256 === file.plan_sha256);
  if (!before || !existsSync(join(place.path!, file.name))) return null;
  const now = digestFile(join(place.path!, file.name), place.path!);
  return now.sha256 === before.sha256 ? before : null;
}

async function writeFile(
  job: Job,
  file: PlannedFile,
  context: WriteContext,
  progress: Omit<Progress, "phase">,
): Promise<OutputFile> {
  const { place, policy, options } = job;
  const { wide, newestVersion } = context;
  const target = targetOf(place, file, options);
  const sink = await openSink(target, { format: place.format, policy, wide }).catch((error: unknown) => {
    target.abort();
    throw error;
  });
  const encode = encodesRuns(place.format, policy) ? place.format : null;
  const tasks = file.runs.map(
    ({ slot, source, head, credit }): Extract<Task, { kind: "make" }> => ({
      kind: "make",
      slot,
      source,
      head,
      credit,
      policy,
      newestVersion,
      wide,
      encode,
    }),
  );
  try {
    for await (const run of job.jobs.run<"make">(tasks)) {
      await sink.write(run);
      progress.done += 1;
      options.onProgress?.({ phase: "write", ...progress });
    }
    const { rows, bytes, sha256 } = await sink.finish();
    const groups = new Set(file.runs.map((run) => run.head.group_id)).size;
    const path = place.directory ? file.name : (place.path?.split("/").at(-1) ?? "-");
    return { path, bytes, sha256, runs: file.runs.length, rows, plan_sha256: file.plan_sha256, groups };
  } catch (error) {
    sink.abort();
    throw error;
  }
}

function targetOf(place: Place, file: PlannedFile, options: MaterializeOptions): ByteTarget {
  if (place.path === null) return new StreamTarget(options.stdout!);
  return new FileTarget(place.directory ? join(place.path, file.name) : place.path);
}

/** The manifest comes last: an output without one is not finished. */
async function finishOutput(place: Place, manifest: OutputManifest): Promise<string | null> {
  if (place.path === null) return null;
  const path = manifestPath(place.path, place.directory);
  const target = new FileTarget(path);
  await target.write(Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`));
  await target.finish();
  if (place.directory) closeShards(place.path, manifest.outputs);
  return path;
}

function sideFiles({ rewards, exclusions, turnRewards }: MaterializeOptions): string[] {
  return [rewards, exclusions, turnRewards].filter((file) => file !== undefined);
}

/** Relative to the same directory as all other inputs, so that one place is enough to check them all again. */
function sideInputs(options: MaterializeOptions, root: string) {
  return sideFiles(options).map((file) => digestFile(realpathSync(file), root));
}

function toolWarnings(surveys: readonly RunSurvey[]): string[] {
  const warning = toolWarning(surveys.map(({ head, tool_use }) => ({ run_id: head.run_id, use: tool_use })));
  return warning === null ? [] : [warning];
}

function unsealedRuns(surveys: readonly RunSurvey[]): string[] {
  return surveys.filter((survey) => survey.unsealed > 0).map((survey) => survey.head.run_id);
}

function runLine(run: PlannedRun, survey: RunSurvey): RunLine {
  const { run_id, trial_id, group_id, reward, termination, excluded, turns, coverage, weight } = run.head;
  const advantage = run.credit.per_turn ? null : (run.credit.advantages?.[0] ?? null);
  return {
    run_id,
    trial_id,
    group_id,
    reward,
    termination,
    excluded,
    turns,
    coverage,
    weight,
    samples: survey.samples.length,
    advantage,
  };
}
