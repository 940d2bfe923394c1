/** From the trajectories of one iteration to rows, by the materializer, under the recipe that the loop's flags describe. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadPolicy, materialize, type RolloutRun } from "@tito/materializer";
import type { RolloutRecord } from "../samples/rollout-record.js";
import { SAMPLE_TOKENS_MAX } from "../trainer/grpo-trainer.js";

export interface BatchToMaterialize {
  readonly records: readonly RolloutRecord[];
  readonly capturedDir: string;
  /** Directory for the side file and the rows. */
  readonly outDir: string;
  /** Number of the weights that are about to be trained; theirs is age 0. */
  readonly currentVersion: number;
  readonly maxVersionAge: number;
}

/** Materializes into `rows.jsonl` and reads it back. `parquetFile` is written too when it is named. */
export async function materializeBatch(
  batch: BatchToMaterialize,
  parquetFile: string | null = null,
): Promise<RolloutRun[]> {
  const rewards = join(batch.outDir, "rewards.jsonl");
  const lines = batch.records.map(({ trajectoryId, groupId, reward }) =>
    JSON.stringify({
      trajectory_id: trajectoryId,
      run_id: trajectoryId,
      trial_id: trajectoryId,
      group_id: groupId,
      reward,
    }),
  );
  writeFileSync(rewards, `${lines.join("\n")}\n`);
  const recipe = loadPolicy(
    [
      "version: 1",
      `select: {max_version_age: ${batch.maxVersionAge}, current_version: ${batch.currentVersion}}`,
      `build: {max_seq_len: ${SAMPLE_TOKENS_MAX}}`,
    ].join("\n"),
  );
  const paths = batch.records.map(({ trajectoryId }) => join(batch.capturedDir, trajectoryId));
  const out = join(batch.outDir, "rows.jsonl");
  await materialize({ paths, out, format: "jsonl", rewards, policy: recipe });
  if (parquetFile !== null) await materialize({ paths, out: parquetFile, format: "parquet", rewards, policy: recipe });
  return readFileSync(out, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as RolloutRun);
}
