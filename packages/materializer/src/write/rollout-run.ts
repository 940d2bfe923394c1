/** The schema `tito.rollout_run/v1`: what a materialized rollout is, field by field. `docs/samples.md` explains it. */
import { z } from "zod";
import { MASK_REASONS, SPAN_KINDS, SPAN_REASONS, TERMINATIONS } from "../recipe/reasons.js";

const tokenCount = z.int().min(0);
const text = z.string();
const score = z.union([z.number(), z.boolean(), z.string(), z.null()]);

export const spanSchema = z.strictObject({
  start: tokenCount,
  end: tokenCount,
  kind: z.enum(SPAN_KINDS),
  /** Trajectory-wide number of the call that brought these ids, in commit order from 0. */
  turn: z.int().min(0),
  reason: z.enum(SPAN_REASONS),
});

/** How one turn of a sample was sampled. A setting that is not on record is null; what it was then is not known. */
export const sampleTurnSchema = z.strictObject({
  turn: z.int().min(0),
  lane: text,
  finish_reason: text,
  logprob_mode: z.enum(["raw", "processed", "unknown"]),
  temperature: z.number().nullable(),
  top_p: z.number().nullable(),
  top_k: z.number().nullable(),
  min_p: z.number().nullable(),
  presence_penalty: z.number().nullable(),
  frequency_penalty: z.number().nullable(),
  repetition_penalty: z.number().nullable(),
  /** Which weights made which of the turn's tokens here, `[start, end)` in the sample. `number`: the oldest that it can be. */
  weight_versions: z.array(
    z.strictObject({ start: tokenCount, end: tokenCount, version: text, number: z.int().nullable() }),
  ),
});

export const sampleSchema = z.strictObject({
  sample_index: z.int().min(0),
  trajectory_id: text,
  /** Segments whose own turns this sample holds. */
  segments: z.array(z.int().min(0)),
  tokens: z.array(z.int()),
  loss_mask: z.array(z.int().min(0).max(1)),
  logprobs: z.array(z.number()),
  /** One number for all trained tokens; null when there is none, or when `advantage_per_action` has them. */
  advantage: z.number().nullable(),
  /** With turn rewards one number per action span, else empty. */
  advantage_per_action: z.array(z.number()),
  weight: z.number().min(0),
  finish_reason: text,
  trained_tokens: tokenCount,
  /** Of all turns that train here; null when they differ or one is not on record. */
  temperature: z.number().nullable(),
  /** Oldest and newest weight version of the trained tokens; null when one of them has no number. */
  version_min: z.int().nullable(),
  version_max: z.int().nullable(),
  spans: z.array(spanSchema),
  /** The turns of the action spans, in order. */
  turns: z.array(sampleTurnSchema),
});

const masked = z.partialRecord(z.enum(MASK_REASONS), tokenCount);

export const coverageSchema = z.strictObject({
  captured_tokens: tokenCount,
  eligible_tokens: tokenCount,
  trained_tokens: tokenCount,
  masked,
});

const groupSchema = z.strictObject({
  group_id: text,
  size: z.int().min(0),
  counted: z.int().min(0),
  mean: z.number().nullable(),
  std: z.number().nullable(),
  flags: z.array(z.enum(["single_member", "zero_std", "lost_members"])),
});

export const runHeadSchema = z.strictObject({
  schema: z.literal("tito.rollout_run/v1"),
  run_id: text,
  group_id: text,
  trial_id: text,
  attempt: z.int().min(0),
  trajectory_ids: z.array(text),
  model: text.nullable(),
  engine: z.strictObject({ kind: text, version: text.nullable() }).nullable(),
  prompt_mode: z.enum(["full_history", "incremental", "mixed"]).nullable(),
  renderer_contract: text.nullable(),
  weight_versions: z.array(text),
  task: z.strictObject({ id: text.nullable(), source: text.nullable(), instruction_sha256: text.nullable() }),
  /** What `--metadata` recorded; reward, exclusion and group rules can see it. */
  metadata: z.record(text, text),
  environment: z.strictObject({ kind: text.nullable(), image: text.nullable(), sandbox_id: text.nullable() }),
  /** What the verifier said, as it said it. */
  scores: z.record(text, score),
  /** File that the scores come from, relative to the trial directory or the mapping file; null when there are none. */
  scores_source: text.nullable(),
  reward_rule: text,
  reward: z.number().nullable(),
  /** Rewards of turns, one per turn over the trajectories in order, when a turn-reward file named this run. */
  turn_rewards: z.array(z.number()).nullable(),
  credit_rule: z.enum(["none", "grpo", "grpo-no-std", "rloo", "batch-baseline"]),
  group: groupSchema,
  weight: z.number().min(0),
  termination: z.enum(TERMINATIONS),
  termination_detail: text.nullable(),
  /** Null, or why the run must not train. */
  excluded: text.nullable(),
  coverage: coverageSchema,
  /** Sampled tokens that are in no sample, and why; part of `coverage.masked`. */
  outside: z.array(
    z.strictObject({
      trajectory_id: text,
      turn: z.int().min(0),
      tokens: tokenCount,
      reason: z.enum(MASK_REASONS),
    }),
  ),
  turns: z.int().min(0),
  /** The distinct effective sampling settings, as canonical JSON objects. */
  sampling: z.array(z.record(text, z.unknown())),
  evidence: z.array(z.strictObject({ path: text, bytes: z.int().min(0), sha256: text })),
  /** Where two sources disagree about an id or a score, in words. */
  conflicts: z.array(text),
});

export const rolloutRunSchema = z.strictObject({ ...runHeadSchema.shape, samples: z.array(sampleSchema) });

/** A run without its samples: everything that is written once per run. */
export type RunHead = z.infer<typeof runHeadSchema>;
/** A run as JSON holds it. In memory the arrays are typed arrays; see {@link MadeSample}. */
export type RolloutRun = z.infer<typeof rolloutRunSchema>;
export type Span = z.infer<typeof spanSchema>;

/** A sample with typed arrays, ready for a writer. */
export interface MadeSample extends Omit<RolloutRun["samples"][number], "tokens" | "loss_mask" | "logprobs"> {
  tokens: Int32Array;
  loss_mask: Uint8Array;
  logprobs: Float32Array | Float64Array;
}

export interface MadeRun {
  head: RunHead;
  samples: MadeSample[];
}

/** JSON Schema (draft 2020-12) of a JSONL line; `schema/rollout-run.v1.schema.json` is this. */
export function rolloutRunJsonSchema(): Record<string, unknown> {
  const schema = z.toJSONSchema(rolloutRunSchema, { target: "draft-2020-12" });
  return { $id: "tito.rollout_run/v1", title: "tito RolloutRun, version 1", ...schema };
}
