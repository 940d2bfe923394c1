/** `tito explain --run --sample --token`: which call produced a token, behind exactly which prefix, and why it trains or not. */
import { createHash } from "node:crypto";
import { TitoError } from "@tito/format";
import { type AssembledRun, type AssembledTrajectory, assembleRun } from "../build/assemble.js";
import type { PlannedSample, PlannedSpan } from "../build/build.js";
import { findTrials } from "../find/discover.js";
import { identify } from "../find/identify.js";
import { runsOf } from "../find/identity.js";
import { isSuperseded } from "../find/lives.js";
import type { RunSource } from "../find/run-source.js";
import { openSideFile } from "../find/side-files.js";
import { newestVersionOf, surveyRun } from "../jobs/survey.js";
import { shortName } from "../read/order.js";
import { loadPolicy, type Policy } from "../recipe/policy.js";
import type { SpanReason } from "../recipe/reasons.js";
import { whyOf } from "./why.js";

/** Turns ids into text; without one, ids are shown. */
export type Decode = (ids: Int32Array) => string;

export interface ExplainTokenOptions {
  /** Trial directories, as given to materialize. */
  paths: readonly string[];
  /** A run_id or trial_id. */
  run: string;
  sample: number;
  token: number;
  policy?: Policy | undefined;
  /** The mapping file, as given to materialize: ids that only it knows are found too. */
  rewards?: string | undefined;
  /** Verdicts, as given to materialize. */
  exclusions?: string | undefined;
  decode?: Decode | undefined;
}

export interface TokenExplanation {
  run_id: string;
  trial_id: string;
  attempt: number;
  sample: number;
  samples: number;
  token: number;
  tokens: number;
  id: number;
  text: string | null;
  loss_mask: 0 | 1;
  logprob: number | null;
  kind: PlannedSpan["kind"];
  reason: SpanReason;
  why: string;
  span: { start: number; end: number };
  trajectory_id: string;
  /** Directory of the trajectory. */
  trajectory: string;
  call_id: string;
  turn: number;
  segment: number;
  file: string;
  offset: number;
  bytes: number;
  lane: string;
  delivery: string;
  finish_reason: string;
  weight_version: string | null;
  /** Place among the turn's sampled ids; null when the token was not sampled. */
  sampled_index: number | null;
  /** The exact prompt of the call: its length, the recorded digest, the digest of this sample's tokens up to there. */
  prefix: { tokens: number; recorded_sha256: string; recomputed_sha256: string; equal: boolean };
  /** Sample that owns a shared token, null otherwise. */
  owner: number | null;
  /** Why the whole run must not train, and its reward; a run that is excluded or has no reward weighs 0 whatever its mask says. */
  excluded: string | null;
  reward: number | null;
}

/** Errors: `not_found` when there is no such run, sample or token, with what there is. */
export function explainToken(options: ExplainTokenOptions): TokenExplanation {
  const policy = options.policy ?? loadPolicy(null);
  const sources = runsOf(findTrials(options.paths), identify, {
    rewards: openSideFile(options.rewards, "rewards"),
    exclusions: openSideFile(options.exclusions, "exclusions"),
    turnRewards: null,
  });
  const source = findRun(sources, options.run);
  const run = assembleRun(source, policy, newestOf(sources, policy));
  const samples = run.trajectories.flatMap((trajectory) =>
    trajectory.built.samples.map((sample) => ({ trajectory, sample })),
  );
  const found = samples[options.sample];
  if (!found) {
    const count = samples.length === 1 ? "1 sample" : `${samples.length} samples`;
    throw new TitoError("not_found", `run ${source.run_id} has ${count}, counted from 0`);
  }
  const span = found.sample.spans.find((each) => each.start <= options.token && options.token < each.end);
  if (!span)
    throw new TitoError("not_found", `sample ${options.sample} has ${found.sample.length} tokens, counted from 0`);
  const owner = span.reason === "shared_prefix" ? ownerOf(samples, span, options.token) : null;
  const { token, decode } = options;
  return {
    run_id: source.run_id,
    trial_id: source.trial_id,
    attempt: source.attempt,
    sample: options.sample,
    samples: samples.length,
    token,
    tokens: found.sample.length,
    id: found.sample.line.tokens[token]!,
    text: decode ? decode(found.sample.line.tokens.slice(token, token + 1)) : null,
    ...spanFacts(span, token, policy),
    ...callFacts(found.trajectory, source, span),
    prefix: prefixOf(found.sample, span),
    owner,
    ...runVerdict(run, source, policy),
  };
}

function runVerdict(
  run: AssembledRun,
  source: RunSource,
  policy: Policy,
): Pick<TokenExplanation, "excluded" | "reward"> {
  const { head } = surveyRun(run, source, { policy, root: source.trial_dir });
  return { excluded: head.excluded, reward: head.reward };
}

function newestOf(sources: readonly RunSource[], policy: Policy): number | null {
  if (policy.select.max_version_age === null) return null;
  if (policy.select.current_version !== null) return policy.select.current_version;
  const versions = sources.flatMap((source) => newestVersionOf(source, policy) ?? []);
  return versions.length > 0 ? versions.reduce((a, b) => Math.max(a, b)) : null;
}

/** The newest attempt of the run with this run_id or trial_id. */
function findRun(sources: readonly RunSource[], id: string): RunSource {
  const named = sources.filter(
    ({ run_id, trial_id, facts }) => run_id === id || trial_id === id || facts?.trial_name === id,
  );
  const newest = named.filter((source) => !isSuperseded(source.excluded) || named.length === 1);
  if (newest.length === 1) return newest[0]!;
  const known = (named.length > 0 ? named : sources).slice(0, 5).map(calledBoth);
  const what = named.length > 1 ? `${named.length} runs are called ${id}` : `no run is called ${id}`;
  throw new TitoError(
    "not_found",
    `${what}; there is ${known.join(", ")}${sources.length > known.length ? ", …" : ""}`,
  );
}

function calledBoth({ run_id, trial_id }: RunSource): string {
  return run_id === trial_id ? run_id : `${run_id} (trial ${trial_id})`;
}

function spanFacts(span: PlannedSpan, token: number, policy: Policy) {
  const sampled = span.kind === "action" ? span.from + token - span.start : null;
  const logprob = sampled === null ? null : (span.turn.logprobs?.[sampled] ?? null);
  const version =
    sampled === null ? null : span.turn.weight_versions.find((each) => each.start <= sampled && sampled < each.end);
  return {
    loss_mask: span.reason === "trained" ? (1 as const) : (0 as const),
    logprob: logprob === null || Number.isNaN(logprob) ? null : logprob,
    kind: span.kind,
    reason: span.reason,
    why: whyOf(span.turn, span.reason, policy),
    span: { start: span.start, end: span.end },
    sampled_index: sampled,
    weight_version: version?.version ?? null,
  };
}

function callFacts(trajectory: AssembledTrajectory, source: RunSource, span: PlannedSpan) {
  const { trajectory_id } = trajectory.evidence;
  const dir = source.trajectories.find((each) => each.trajectory_id === trajectory_id)?.dir;
  const { call_id, turn, segment, file, offset, bytes, lane, delivery, finish_reason } = span.turn;
  const path = dir === undefined ? trajectory.evidence.path : shortName(dir);
  return {
    trajectory_id,
    trajectory: path,
    call_id,
    turn,
    segment,
    file,
    offset,
    bytes,
    lane,
    delivery,
    finish_reason,
  };
}

/** The prompt of the span's call, hashed from this sample's own tokens. */
function prefixOf(sample: PlannedSample, span: PlannedSpan): TokenExplanation["prefix"] {
  const action = sample.spans.find((each) => each.kind === "action" && each.turn === span.turn);
  const tokens = action?.start ?? span.turn.prompt_keep + span.turn.prompt_suffix.length;
  const prefix = sample.line.tokens.subarray(0, tokens);
  const recomputed = createHash("sha256")
    .update(new Uint8Array(prefix.buffer, prefix.byteOffset, prefix.byteLength))
    .digest("hex");
  const recorded = Buffer.from(span.turn.prompt_sha256).toString("hex");
  return { tokens, recorded_sha256: recorded, recomputed_sha256: recomputed, equal: recorded === recomputed };
}

function ownerOf(samples: readonly { sample: PlannedSample }[], span: PlannedSpan, token: number): number | null {
  const at = span.from + token - span.start;
  const owner = samples.findIndex(({ sample }) =>
    sample.spans.some(
      (each) =>
        each.turn === span.turn &&
        each.kind === "action" &&
        each.reason !== "shared_prefix" &&
        each.from <= at &&
        at < each.from + each.end - each.start,
    ),
  );
  return owner < 0 ? null : owner;
}
