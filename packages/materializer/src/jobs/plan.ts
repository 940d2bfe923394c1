/** From surveys to a write plan: credits in the heads, runs in files. Pure. */
import { createHash } from "node:crypto";
import { FORMAT_VERSION } from "@tito/format";
import { assignCredit } from "../credit/credit.js";
import { isSuperseded } from "../find/lives.js";
import type { RunSource } from "../find/run-source.js";
import { canonicalJson } from "../recipe/canonical-json.js";
import { type Policy, policyDigest } from "../recipe/policy.js";
import type { Format } from "../write/encoded-run.js";
import type { RunHead } from "../write/rollout-run.js";
import type { RunCredit } from "./make.js";
import { type RunSurvey, runKey } from "./survey.js";

/** A run with everything that pass two needs. */
export interface PlannedRun {
  /** Number of the run among the sources. */
  slot: number;
  source: RunSource;
  head: RunHead;
  credit: RunCredit;
  /** Digest over the run's inputs, head and credit. */
  sha256: string;
}

/** One output file. */
export interface PlannedFile {
  /** Name inside a directory of shards; empty for a single file. */
  name: string;
  runs: PlannedRun[];
  plan_sha256: string;
}

export const MATERIALIZER_VERSION = "1";

/** Credits of all runs, written into copies of their heads. */
export function planRuns(sources: readonly RunSource[], surveys: readonly RunSurvey[], policy: Policy): PlannedRun[] {
  const members = surveys.map((survey) => ({
    key: runKey(survey.head),
    group: survey.head.group_id,
    excluded: survey.head.excluded !== null,
    superseded: isSuperseded(survey.head.excluded),
    rewards: survey.rewards,
    trained_tokens: survey.head.coverage.trained_tokens,
  }));
  const credits = assignCredit(members, policy.credit.rule, policy.credit.weight);
  return surveys.map((survey, i) => {
    const { advantages, weight, group } = credits.get(runKey(survey.head))!;
    const head: RunHead = {
      ...survey.head,
      group: { ...group, flags: group.flags as RunHead["group"]["flags"] },
      weight,
    };
    const credit = { advantages, per_turn: sources[i]!.turn_rewards !== null };
    const sha256 = createHash("sha256")
      .update(canonicalJson([head, credit, survey.inputs]))
      .digest("hex");
    return { slot: i, source: sources[i]!, head, credit, sha256 };
  });
}

export interface PlanOptions {
  format: Format;
  policy: Policy;
  wide: boolean;
  newestVersion: number | null;
  /** Several files in a directory: a group is never spread over two, so that a new member rewrites one file only. */
  directory: boolean;
}

export function planFiles(runs: readonly PlannedRun[], options: PlanOptions): PlannedFile[] {
  if (!options.directory) return [plannedFile("", [...runs], options)];
  const shards = new Map<number, PlannedRun[]>();
  for (const run of runs) {
    const shard = shardOf(run.head.group_id, options.policy.output.shards);
    shards.set(shard, [...(shards.get(shard) ?? []), run]);
  }
  return [...shards]
    .sort(([a], [b]) => a - b)
    .map(([shard, members]) => plannedFile(shardName(shard, options), members, options));
}

function plannedFile(name: string, runs: PlannedRun[], options: PlanOptions): PlannedFile {
  const { format, policy, wide, newestVersion } = options;
  const versions = [MATERIALIZER_VERSION, FORMAT_VERSION];
  const parts = [format, policyDigest(policy), wide, newestVersion, versions, runs.map((run) => run.sha256)];
  return { name, runs, plan_sha256: createHash("sha256").update(canonicalJson(parts)).digest("hex") };
}

function shardOf(groupId: string, shards: number): number {
  return createHash("sha256").update(groupId).digest().readUInt32BE(0) % shards;
}

function shardName(shard: number, options: PlanOptions): string {
  const pad = (value: number) => String(value).padStart(4, "0");
  return `shard-${pad(shard)}-of-${pad(options.policy.output.shards)}.${options.format}`;
}
