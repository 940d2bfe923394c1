/**
 * `tito materialize --follow`: runs as JSON lines while the trials still go on, whole groups at a time. What was emitted is read back from the
 * output itself, so that a restart neither loses nor repeats a run. I/O edge.
 */
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, statSync, truncateSync, writeSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { TitoError } from "@tito/format";
import { assembleRun } from "../build/assemble.js";
import type { RunSource } from "../find/run-source.js";
import { commonParent } from "../read/order.js";
import { loadPolicy, type Policy } from "../recipe/policy.js";
import { runToJsonl } from "../write/encode.js";
import { refuseWidePolicy } from "./job-shard.js";
import { makeRun } from "./make.js";
import { findRuns, type RunPaths } from "./materialize.js";
import { planRuns } from "./plan.js";
import { runKey, surveyRun } from "./survey.js";

export interface FollowOptions extends RunPaths {
  /** A JSONL file that is appended to. */
  out: string;
  policy?: Policy | undefined;
  /** Ended runs that a group is emitted with. */
  groupSize: number;
  /** How long a group waits for its other members, and a sealed trial for its reward. */
  groupTimeoutMs: number;
  pollMs: number;
  signal: AbortSignal;
  onProgress?: ((progress: { emitted: number }) => void) | undefined;
}

/** Follows until `signal`. Errors: `usage`, `cannot_write`, `damaged` for an output with other lines. Answers how many runs the output holds. */
export async function followRuns(options: FollowOptions): Promise<number> {
  const follower = new Follower(options);
  while (!options.signal.aborted) {
    follower.pass(Date.now());
    options.onProgress?.({ emitted: follower.emitted.size });
    await wait(options.pollMs, undefined, { signal: options.signal }).catch(() => undefined);
  }
  return follower.emitted.size;
}

/** One look at the trials after the other. */
export class Follower {
  /** Keys of the runs that the output holds. */
  readonly emitted: Set<string>;
  private readonly policy: Policy;

  constructor(private readonly options: Omit<FollowOptions, "signal" | "pollMs">) {
    this.policy = options.policy ?? loadPolicy(null);
    refuseWidePolicy(this.policy, "--follow");
    if (!options.out.endsWith(".jsonl"))
      throw new TitoError("usage", `--follow writes JSON lines, and --out ${options.out} does not end with .jsonl`);
    this.emitted = readEmitted(options.out);
  }

  /** Emits every group that is due. */
  pass(nowMs: number): void {
    const { groupSize, groupTimeoutMs } = this.options;
    const groups = new Map<string, Ended[]>();
    for (const source of this.sources()) {
      const endedMs = endOf(source);
      if (endedMs === null || (!isSettled(source) && nowMs - endedMs < groupTimeoutMs)) continue;
      groups.set(source.group_id, [...(groups.get(source.group_id) ?? []), { source, endedMs }]);
    }
    for (const members of groups.values()) {
      const fresh = members.filter(({ source }) => !this.emitted.has(runKey(source)));
      if (fresh.length === 0) continue;
      const oldest = Math.min(...fresh.map(({ endedMs }) => endedMs));
      // A member that comes late goes out by itself, with credit over the whole group.
      const whole = members.length >= groupSize;
      if (whole || nowMs - oldest >= groupTimeoutMs) this.emit(members.map(({ source }) => source));
    }
  }

  private sources(): RunSource[] {
    try {
      return findRuns(this.options).sources;
    } catch (error) {
      // Nothing is there yet, or a directory went away while it was looked at.
      const { code } = error as { code?: unknown };
      const paths = this.options.paths.every((path) => existsSync(path));
      if (paths && (code === "not_found" || code === "ENOENT")) return [];
      throw error;
    }
  }

  /** The group's new runs, in one append. */
  private emit(sources: readonly RunSource[]): void {
    const { policy } = this;
    const newestVersion = policy.select.current_version;
    const root = commonParent(sources.map((source) => source.trial_dir));
    const assembled = sources.map((source) => assembleRun(source, policy, newestVersion));
    const surveys = assembled.map((run, i) => surveyRun(run, sources[i]!, { policy, root }));
    const wide = policy.output.logprobs === "float64";
    const lines: Buffer[] = [];
    const keys: string[] = [];
    for (const { slot, source, head, credit } of planRuns(sources, surveys, policy)) {
      if (this.emitted.has(runKey(source))) continue;
      lines.push(...runToJsonl(makeRun(assembled[slot]!, head, credit, { wide, policy })));
      keys.push(runKey(source));
    }
    append(this.options.out, Buffer.concat(lines));
    for (const key of keys) this.emitted.add(key);
  }
}

interface Ended {
  source: RunSource;
  endedMs: number;
}

/** When the trial ended; null while it goes on: its runner says so, or every trajectory is sealed. */
function endOf({ facts, trajectories, trial_dir }: RunSource): number | null {
  const seals = trajectories.map(({ dir }) => statSync(join(dir, "COMPLETE"), { throwIfNoEntry: false })?.mtimeMs);
  const result = facts?.kind === "harbor" ? statSync(join(trial_dir, "result.json"), { throwIfNoEntry: false }) : null;
  const runnerEnded = facts !== null && (facts.failure !== null || facts.scores.size > 0) ? result?.mtimeMs : undefined;
  if (runnerEnded !== undefined) return runnerEnded;
  if (seals.length === 0 || seals.some((ms) => ms === undefined)) return null;
  return Math.max(...seals.map((ms) => ms!));
}

/** The verifier has spoken, or there will be nothing to speak about. */
function isSettled({ facts, scores }: RunSource): boolean {
  return scores.length > 0 || (facts?.failure ?? null) !== null;
}

/** A last line that a kill cut off is taken away; its run is emitted again. */
function readEmitted(out: string): Set<string> {
  const emitted = new Set<string>();
  if (!existsSync(out)) return emitted;
  const text = readFileSync(out);
  const whole = text.lastIndexOf(0x0a) + 1;
  if (whole < text.length) truncateSync(out, whole);
  for (const [i, line] of text.subarray(0, whole).toString("utf8").split("\n").entries()) {
    if (line !== "") emitted.add(keyOf(line, `${out} line ${i + 1}`));
  }
  return emitted;
}

function keyOf(line: string, where: string): string {
  try {
    const run = JSON.parse(line) as { schema: string; run_id: string; trial_id: string; attempt: number };
    if (run.schema === "tito.rollout_run/v1") return runKey(run);
  } catch {
    // Told below.
  }
  throw new TitoError("damaged", `${where} is no run`, { hint: "name an output of --follow, or a new file" });
}

function append(out: string, bytes: Buffer): void {
  try {
    const fd = openSync(out, "a", 0o644);
    try {
      for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at);
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
  } catch (cause) {
    throw new TitoError("cannot_write", `cannot write ${out}: ${String(cause)}`, { cause });
  }
}
