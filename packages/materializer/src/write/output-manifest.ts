/** The manifest beside an output: what was counted, what was left out, and what everything was made from. */
import { z } from "zod";
import { coverageSchema } from "./rollout-run.js";

const fileSchema = z.strictObject({ path: z.string(), bytes: z.int().min(0), sha256: z.string() });
const counts = z.record(z.string(), z.int().min(0));

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
  wide_logprobs: z.boolean(),
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
