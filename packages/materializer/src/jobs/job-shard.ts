/** One of several machines' share of a job: whole groups, chosen by their ids, so that no machine needs to know of another. Pure. */
import { createHash } from "node:crypto";
import { TitoError } from "@tito/format";
import type { RunSource } from "../find/run-source.js";
import type { Policy } from "../recipe/policy.js";

/** Share `index` of `count`, from 0. */
export interface JobShard {
  index: number;
  count: number;
}

/** The runs of this share. Every group is in exactly one. Errors: `usage` for a policy under which a row depends on runs outside its group. */
export function shardRuns(sources: readonly RunSource[], shard: JobShard, policy: Policy): RunSource[] {
  refuseWidePolicy(policy, "--shard");
  return sources.filter((source) => shareOf(source.group_id, shard.count) === shard.index);
}

function shareOf(groupId: string, count: number): number {
  return createHash("sha256").update("share\0").update(groupId).digest().readUInt32BE(0) % count;
}

/** `flag` is what cannot be combined with it. Errors: `usage`. */
export function refuseWidePolicy({ credit, select, pack }: Policy, flag: string): void {
  const refuse = (what: string, hint: string): never => {
    throw new TitoError("usage", `${flag}: ${what}`, { hint });
  };
  if (credit.group !== "run.group_id")
    refuse("credit.group makes groups that are not known before all trials are read", "set group_id with --rewards");
  if (credit.rule === "batch-baseline")
    refuse("batch-baseline divides by the deviation over the whole output", "use grpo, grpo-no-std or rloo");
  if (credit.weight === "token") refuse("weight token divides by the mean over the whole output", "use weight run");
  if (select.max_version_age !== null && select.current_version === null)
    refuse("the newest version is not known before all trials are read", "state select.current_version");
  if (pack.max_tokens !== null) refuse("packing mixes the samples of all groups", "leave --pack-max-tokens out");
}
