/**
 * `tito import`: segment files from a log of calls. The log is read twice: first every line is checked and put to its trajectory, so that
 * nothing is written when a line is damaged; then one trajectory after the other is recorded, with the code that records live calls.
 */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { basename, join } from "node:path";
import { isTrajectoryId, type ManifestStatus, TitoError } from "@tito/format";
import { WRITER_VERSION } from "../sidecar.js";
import { ImportedTrajectory } from "./import-trajectory.js";
import { readLine } from "./line.js";
import { type LinePlace, LineReader, type LogIdentity, scanLog } from "./log-lines.js";
import type { Labels, LoggedLine } from "./logged-call.js";

export interface ImportOptions {
  /** JSON lines, or files ending in `.json` that hold one record. Lines are in the order in which the calls ended. */
  logs: readonly string[];
  /** Directory that gets `<trajectory>/`. */
  out: string;
  /** Of lines that name none. Default: the name of the log. */
  trajectoryId?: string;
  /** Only `full_history` can be imported. */
  promptMode?: "full_history" | "incremental";
  /** Record a gap in place of a damaged line. */
  skipBad?: boolean;
  /** Count answers as delivered where the log does not say. */
  assumeDelivered?: boolean;
  model?: string;
  engine?: string;
  weightVersion?: string;
  logprobsMode?: "raw" | "processed";
  /** Sampling fields that the log does not tell. */
  sampling?: Readonly<Record<string, number>>;
  harness?: string;
  metadata?: Readonly<Record<string, string>>;
  durability?: "fsync" | "write";
  onProgress?: (done: number, total: number) => void;
}

export interface ImportedSummary {
  trajectory_id: string;
  dir: string;
  calls: number;
  turns: number;
  segments: number;
  sampled_tokens: number;
  uncaptured: number;
  gaps: number;
  defects: Record<string, number>;
  status: ManifestStatus;
}

export interface ImportReport {
  trajectories: ImportedSummary[];
  lines: number;
  bad: BadLine[];
  /** Fields that nothing reads → in how many lines. */
  ignored: Record<string, number>;
  warnings: string[];
}

export interface BadLine {
  file: string;
  line: number;
  reason: string;
  /** Null: the line does not tell, so every trajectory of its log gets the gap. */
  trajectory_id: string | null;
}

interface Planned {
  labels: Labels;
  callIds: Set<string>;
  lines: { log: number; place: LinePlace }[];
  gaps: string[];
}

/**
 * @throws TitoError `usage` for incremental mode, `format_invalid` with file and line for a damaged one, `already_exists` for a trajectory
 * that is there, `cannot_write`, `capture_degraded`.
 */
export async function importLog(options: ImportOptions): Promise<ImportReport> {
  checkOptions(options);
  const plan = new Plan(options);
  for (const [log, file] of options.logs.entries()) await plan.read(log, file);
  plan.spreadGaps();
  const planned = [...plan.trajectories];
  for (const [id] of planned) {
    const dir = join(options.out, id);
    if (existsSync(dir)) {
      throw new TitoError("already_exists", `${dir} is there already`, {
        hint: "choose another --out: what was recorded is never added to or replaced",
      });
    }
  }
  const trajectories: ImportedSummary[] = [];
  for (const [id, one] of planned) {
    trajectories.push(await writeTrajectory(id, one, plan));
    options.onProgress?.(trajectories.length, planned.length);
  }
  return {
    trajectories,
    lines: plan.lines,
    bad: plan.bad,
    ignored: Object.fromEntries(plan.ignored),
    warnings: [...plan.warnings, ...untold(plan)],
  };
}

/** What the log does not say and the materializer has to decide about. */
function untold({ calls, options }: Plan): string[] {
  const warnings: string[] = [];
  if (calls.undelivered > 0 && options.assumeDelivered !== true) {
    warnings.push(
      `${calls.undelivered} answers are not said to have been delivered: one that no later prompt contains does not train (--assume-delivered)`,
    );
  }
  if (calls.unsampled > 0 && options.sampling === undefined) {
    warnings.push(
      `${calls.unsampled} calls do not say how they were sampled (--sampling temperature=… where it was not 1)`,
    );
  }
  return warnings;
}

function checkOptions(options: ImportOptions): void {
  if (options.promptMode === "incremental") {
    throw new TitoError(
      "usage",
      "--tito-prompt-mode incremental: a log can only be imported as full_history, because a prompt cannot be replaced after the fact",
      {
        hint: "the ids of these prompts were sampled from already; incremental needs a sidecar in front of the engine",
      },
    );
  }
  if (options.trajectoryId !== undefined && !isTrajectoryId(options.trajectoryId)) {
    throw new TitoError("usage", "--trajectory-id: use 1 to 64 of the characters A-Z a-z 0-9 _ -");
  }
}

/** What the first reading finds: which lines make which trajectory, and what is wrong. */
class Plan {
  readonly trajectories = new Map<string, Planned>();
  readonly identities: LogIdentity[] = [];
  readonly bad: BadLine[] = [];
  readonly ignored = new Map<string, number>();
  readonly warnings: string[] = [];
  lines = 0;
  /** Calls that do not say whether they were delivered, and how they were sampled. */
  readonly calls = { undelivered: 0, unsampled: 0 };
  private readonly ofLog: Set<string>[] = [];

  constructor(readonly options: ImportOptions) {}

  async read(log: number, file: string): Promise<void> {
    this.ofLog[log] = new Set();
    this.identities[log] = await scanLog(file, (place, bytes) => {
      this.lines += 1;
      try {
        this.add(log, place, readLine(bytes, ownCallId(log, place)));
      } catch (error) {
        this.refuse({ log, place, error, trajectory_id: guessTrajectory(bytes) });
      }
    });
  }

  private add(log: number, place: LinePlace, line: LoggedLine): void {
    const id = this.idOf(log, place, line);
    let planned = this.trajectories.get(id);
    if (planned === undefined) {
      planned = { labels: withSource(line.labels, id), callIds: new Set(), lines: [], gaps: [] };
      this.trajectories.set(id, planned);
    }
    const { callIds } = planned;
    const twice = line.calls.find((call) => callIds.has(call.callId));
    if (twice !== undefined) throw new TitoError("format_invalid", `the call id ${twice.callId} is there twice`);
    for (const call of line.calls) {
      callIds.add(call.callId);
      if (call.delivered === null) this.calls.undelivered += 1;
      if (Object.keys(call.sampling).length === 0) this.calls.unsampled += 1;
    }
    this.ofLog[log]!.add(id);
    planned.lines.push({ log, place });
    const where = `${this.options.logs[log]}:${place.line}`;
    const other = otherLabel(planned.labels, line.labels);
    if (other !== null) line.warnings.push(`${other} differs from that of the trajectory's first line, which is used`);
    if (this.warnings.length < WARNINGS_MAX)
      this.warnings.push(...line.warnings.map((warning) => `${where}: ${warning}`));
    for (const name of line.ignored) this.ignored.set(name, (this.ignored.get(name) ?? 0) + 1);
  }

  /** A line that names no trajectory belongs to the log's; a line that holds a whole trial is one by itself. */
  private idOf(log: number, place: LinePlace, line: LoggedLine): string {
    if (line.labels.trajectory !== null) return directoryName(line.labels.trajectory);
    const own = this.options.trajectoryId ?? directoryName(basename(this.options.logs[log]!).replace(/\.jsonl?$/, ""));
    return line.trial && this.options.trajectoryId === undefined ? directoryName(`${own}-${place.line}`) : own;
  }

  /** @throws the error with file and line, unless bad lines are skipped. */
  refuse(bad: { log: number; place: LinePlace; error: unknown; trajectory_id: string | null }): void {
    if (!TitoError.is(bad.error) || !BAD_LINE.has(bad.error.code)) throw bad.error;
    const file = this.options.logs[bad.log]!;
    const { line } = bad.place;
    const reason = bad.error.message;
    if (this.options.skipBad !== true) {
      throw new TitoError("format_invalid", `${file}:${line}: ${reason}`, {
        cause: bad.error,
        hint: "--skip-bad records a gap in its place",
      });
    }
    this.bad.push({ file, line, reason, trajectory_id: bad.trajectory_id });
  }

  /** A damaged line that does not tell its trajectory may have been a call of any in its log. */
  spreadGaps(): void {
    for (const { file, line, reason, trajectory_id } of this.bad) {
      const named = trajectory_id === null ? undefined : this.trajectories.get(trajectory_id);
      const all = [...this.ofLog[this.options.logs.indexOf(file)]!].map((id) => this.trajectories.get(id)!);
      for (const planned of named === undefined ? all : [named]) {
        planned.gaps.push(`${basename(file)}:${line} is damaged: ${reason}`);
      }
    }
  }
}

const WARNINGS_MAX = 100;
const BAD_LINE: ReadonlySet<string> = new Set(["format_invalid", "format_limit", "bad_request", "unsupported"]);

async function writeTrajectory(id: string, planned: Planned, plan: Plan): Promise<ImportedSummary> {
  const { options } = plan;
  const logs = [...new Set(planned.lines.map((line) => line.log))];
  const input = {
    trajectoryId: id,
    labels: planned.labels,
    configJson: JSON.stringify({
      import: logs.map((log) => plan.identities[log]),
      prompt_mode: "full_history",
    }),
    writerVersion: WRITER_VERSION,
  };
  const trajectory = await ImportedTrajectory.open(input, options);
  const readers = new Map(logs.map((log) => [log, new LineReader(options.logs[log]!)]));
  try {
    for (const { log, place } of planned.lines) {
      const line = readLine(readers.get(log)!.read(place), ownCallId(log, place));
      const source = { path: basename(options.logs[log]!), line: place.line };
      for (const call of line.calls) {
        try {
          await trajectory.add(call, source);
        } catch (error) {
          plan.refuse({ log, place, error, trajectory_id: id });
          trajectory.noteGap(`${source.path}:${place.line}: ${(error as TitoError).message}`);
        }
      }
    }
    for (const gap of planned.gaps) trajectory.noteGap(gap);
    const { manifest } = await trajectory.seal();
    const { calls, turns, segments, sampled_tokens, uncaptured, gaps } = manifest.counts;
    return {
      trajectory_id: id,
      dir: join(options.out, id),
      ...{ calls, turns, segments, sampled_tokens, uncaptured, gaps },
      defects: Object.fromEntries(trajectory.defects),
      status: manifest.status,
    };
  } catch (error) {
    trajectory.abandon();
    throw error;
  } finally {
    for (const reader of readers.values()) reader.close();
  }
}

/** Name of a call that the log does not name: which log, which line. */
function ownCallId(log: number, place: LinePlace): string {
  return `${log === 0 ? "" : `f${log + 1}-`}l${place.line}`;
}

/** An id as a directory name; one that can not be one is shortened and told apart by its digest. */
function directoryName(id: string): string {
  if (isTrajectoryId(id)) return id;
  const digest = createHash("sha256").update(id).digest("hex").slice(0, 12);
  const readable = id.replace(/[^A-Za-z0-9_-]+/g, "-").slice(0, 50);
  return `${readable}-${digest}`;
}

function otherLabel(first: Labels, later: Labels): string | null {
  for (const [name, field] of [
    ["run_id", "runId"],
    ["group_id", "groupId"],
    ["trial_id", "trialId"],
  ] as const) {
    if (later[field] !== null && later[field] !== first[field]) return name;
  }
  return null;
}

/** Labels with the id as the log spells it, where the directory's name is another. */
function withSource(labels: Labels, id: string): Labels {
  if (labels.trajectory === null || labels.trajectory === id) return labels;
  return { ...labels, metadata: new Map([...labels.metadata, ["source_trajectory_id", labels.trajectory]]) };
}

const NAMED = /"(?:trajectory_id|session_id|rollout_id|conversation_id|trial_name)"\s*:\s*"([^"\\]{1,256})"/g;

/** The trajectory that a damaged line still names; null when it names none, or several. */
function guessTrajectory(bytes: Uint8Array): string | null {
  const names = new Set([...Buffer.from(bytes).toString("utf8").matchAll(NAMED)].map((match) => match[1]!));
  return names.size === 1 ? directoryName([...names][0]!) : null;
}
