/** The first reading of a log: which lines make which trajectory, and what is wrong with them. Nothing is written. */
import { createHash } from "node:crypto";
import { basename } from "node:path";
import { isTrajectoryId, TitoError } from "@tito/format";
import { NEUTRAL_SAMPLING } from "../sample/sampling.js";
import { type ImportOptions, samplingOf } from "./import-options.js";
import { readLine } from "./line.js";
import { type LinePlace, type LogIdentity, scanLog } from "./log-lines.js";
import { engineOf, type Labels, type LoggedCall, type LoggedLine } from "./logged-call.js";

export interface BadLine {
  file: string;
  line: number;
  reason: string;
  /** Null: the line does not tell, so every trajectory of its log gets the gap. */
  trajectory_id: string | null;
}

export interface PlannedTrajectory {
  labels: Labels;
  callIds: Set<string>;
  lines: { log: number; place: LinePlace }[];
  gaps: string[];
}

const WARNINGS_MAX = 100;
const BAD_LINE: ReadonlySet<string> = new Set(["format_invalid", "format_limit", "bad_request", "unsupported"]);

/** What the first reading finds: which lines make which trajectory, and what is wrong. */
export class ImportPlan {
  readonly trajectories = new Map<string, PlannedTrajectory>();
  readonly identities: LogIdentity[] = [];
  readonly bad: BadLine[] = [];
  readonly ignored = new Map<string, number>();
  readonly warnings: string[] = [];
  lines = 0;
  /** Calls that do not say whether they were delivered, how they were sampled, why they ended. */
  readonly calls = { undelivered: 0, unsampled: 0, unfinished: 0 };
  /** Engines that count the ids of some of their replies. */
  readonly counting = new Set<string>();
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
      if (!isSamplingKnown(call, this.options)) this.calls.unsampled += 1;
      if (call.excused.has("finish_missing")) this.calls.unfinished += 1;
      if (!call.excused.has("usage_missing")) this.counting.add(engineOf(call, this.options.engine));
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

/** Processed values are those of the sampled distribution whatever it was; others need every setting that an engine fills in by itself. */
function isSamplingKnown(call: LoggedCall, options: ImportOptions): boolean {
  if ((call.logprobMode ?? options.logprobsMode) === "processed") return true;
  const stated: Record<string, unknown> = { ...samplingOf(options), ...call.sampling };
  return Object.keys(NEUTRAL_SAMPLING).every((name) => typeof stated[name] === "number");
}

/** What the log does not say and the materializer has to decide about. */
export function untold({ calls, options }: ImportPlan): string[] {
  const warnings: string[] = [];
  if (calls.undelivered > 0 && options.assumeDelivered !== true) {
    warnings.push(
      `${calls.undelivered} answers are not said to have been delivered: one that no later prompt contains does not train (--assume-delivered)`,
    );
  }
  if (calls.unsampled > 0) {
    warnings.push(
      `${calls.unsampled} calls do not state every sampling setting, so that their log probabilities may be those of another distribution: they do not train (--sampling neutral, or NAME=VALUE for each; --logprobs-mode processed)`,
    );
  }
  if (calls.unfinished > 0) {
    warnings.push(`${calls.unfinished} calls do not say why they ended: they are taken for whole answers`);
  }
  return warnings;
}

/** Name of a call that the log does not name: which log, which line. */
export function ownCallId(log: number, place: LinePlace): string {
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
