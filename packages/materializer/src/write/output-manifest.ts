/** The manifest beside an output: what was counted, what was left out, and what everything was made from. */

import { z } from "zod";
import { modelFactsSchema } from "../read/model-facts.js";
import { coverageSchema } from "./rollout-run.js";

const fileSchema = z.strictObject({ path: z.string(), bytes: z.int().min(0), sha256: z.string() });
const counts = z.record(z.string(), z.int().min(0));

const whole = z.int().min(0);

const findingsSchema = z.strictObject({
  continuity: z.strictObject({
    prompt_differs_from_canonical_replay: whole,
    prompts_compared: whole,
    prompts_not_compared: whole,
    trained_but_not_sampled: whole,
  }),
  /** By engine. */
  capture_loss: z.array(
    z.strictObject({
      engine: z.string(),
      sampled_tokens: whole,
      lost_tokens: whole,
      turns: whole,
      lost_turns: whole,
      uncounted_turns: whole,
      lost_calls: whole,
    }),
  ),
  volatile_text: z.array(z.strictObject({ text: z.string(), segments: whole, reread_tokens: whole, turn: whole })),
  side_calls: z.strictObject({
    turns: whole,
    trained_tokens: whole,
    suspects: z.array(
      z.strictObject({
        run_id: z.string(),
        trajectory: z.string(),
        turn: whole,
        lane: z.string(),
        trained_tokens: whole,
        signs: z.array(z.string()),
      }),
    ),
  }),
  not_behaviour: counts,
  untold_sampling: z.array(z.string()),
  untold_finish_turns: whole,
});

export const outputFileSchema = z.strictObject({
  ...fileSchema.shape,
  runs: z.int(),
  rows: z.int(),
  /** Digest over everything that this file is made from; equal digest, equal bytes. */
  plan_sha256: z.string(),
  groups: z.int(),
});

export const outputManifestSchema = z.strictObject({
  schema: z.literal("tito.materialized/v1"),
  format: z.enum(["jsonl", "parquet", "msgpack"]),
  packed: z.boolean(),
  /** Log probabilities are float64 (`--logprobs float64`). */
  wide_logprobs: z.boolean(),
  /** Recorded log probabilities that float32 does not hold exactly; 0 in a float64 output. */
  logprobs_rounded: z.int().min(0).optional(),
  newest_version: z.number().nullable(),
  versions: z.strictObject({ materializer: z.string(), format: z.int() }),
  policy_sha256: z.string(),
  policy: z.record(z.string(), z.unknown()),
  counts: z.strictObject({
    trials: z.int(),
    runs: z.int(),
    samples: z.int(),
    samples_untrained: z.int(),
    trajectories: z.int(),
    unsealed_trajectories: z.int(),
    turns: z.int(),
    tokens: z.int(),
    groups: z.int(),
    rewarded_runs: z.int(),
    dangling_calls: z.int(),
  }),
  coverage: coverageSchema,
  /** trained / eligible and trained / captured; null when the divisor is 0. */
  trained_of_eligible: z.number().nullable(),
  trained_of_captured: z.number().nullable(),
  weight: z.number(),
  reward_mean: z.number().nullable(),
  terminations: counts,
  exclusions: counts,
  group_flags: counts,
  uncaptured: counts,
  /** Turns whose request offered tools, those that called one, those whose text looks like a call that was not parsed. */
  tool_use: z
    .strictObject({ offered_turns: z.int(), called_turns: z.int(), unparsed_turns: z.int(), silent_runs: z.int() })
    .optional(),
  /** What was lost, what trains and may not be meant to, what splits conversations; docs/samples.md#findings. */
  findings: findingsSchema.optional(),
  /** The models of the input, as their renderer bundles told: for padding and for checks of ids. Empty where the engine renders. */
  models: z.array(modelFactsSchema).optional(),
  warnings: z.array(z.string()),
  outputs: z.array(outputFileSchema),
  inputs: z.array(fileSchema),
});

export type OutputManifest = z.infer<typeof outputManifestSchema>;
export type OutputFile = z.infer<typeof outputFileSchema>;

/** Name of the manifest: inside a directory of shards, else beside the file. */
export function manifestPath(out: string, directory: boolean): string {
  return directory ? `${out}/materialized.json` : `${out}.manifest.json`;
}
