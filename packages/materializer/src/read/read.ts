/** Stage "read": a trajectory directory → evidence. I/O edge; nothing is repaired, what cannot be trusted is marked. */
import { createHash } from "node:crypto";
import { closeSync, existsSync, openSync, readdirSync, readSync, statSync } from "node:fs";
import { basename, join, relative, sep } from "node:path";
import {
  danglingCalls,
  FORMAT_VERSION,
  type JournalHeader,
  type LoggedTurn,
  type Manifest,
  readManifest,
  readRecords,
  readVerified,
  rebuildLines,
  type Severity,
  TitoError,
  type TrajectoryLog,
  type TrajectoryVerdict,
  turnsInCommitOrder,
} from "@tito/format";
import type { LaneRules } from "../recipe/lane-rules.js";
import { markDamage } from "./damage.js";
import type {
  Delivery,
  EvidenceSegment,
  EvidenceTurn,
  InputFile,
  RecordedIdentity,
  TrajectoryEvidence,
} from "./evidence.js";
import { modelFactsOf } from "./model-facts.js";
import { compareText } from "./order.js";
import { lanesByRules, requestFacts } from "./requests.js";
import { volatileCosts } from "./volatile-text.js";

/** Ids that a trajectory carries, from its manifest or its first journal header. Cheap: no turn is read. */
export function readIdentity(dir: string): { trajectory_id: string; identity: RecordedIdentity } {
  const header = manifestOf(dir) ?? headerOf(dir);
  return header === null ? { trajectory_id: basename(dir), identity: NO_IDENTITY } : identityOf(header);
}

/** Null also when it cannot be read. */
function headerOf(dir: string) {
  try {
    return firstHeader(dir);
  } catch (error) {
    if (whyUnreadable(error) !== null) return null;
    throw error;
  }
}

function identityOf(header: Manifest | JournalHeader): { trajectory_id: string; identity: RecordedIdentity } {
  const { trajectory_id, run_id, group_id, trial_id, attempt, metadata } = header;
  return {
    trajectory_id,
    identity: { run_id, group_id, trial_id, attempt, metadata: new Map(Object.entries(metadata)) },
  };
}

/** Null also when it cannot be read: then the evidence says so. */
function manifestOf(dir: string) {
  try {
    return readManifest(dir);
  } catch (error) {
    if (whyUnreadable(error) !== null) return null;
    throw error;
  }
}

/**
 * What is wrong with one trajectory, in words: its content is broken, a later version wrote it, or this user may not read it. The others of a
 * thousand come through, and this one is named. Null for everything else, a failing disk for one, which would make an output that silently lacks most of its runs.
 */
function whyUnreadable(error: unknown): string | null {
  const forbidden = forbiddenCode(error);
  if (forbidden !== null) return `this user may not read it (${forbidden})`;
  if (!TitoError.is(error)) return null;
  return ["format_invalid", "format_limit", "damaged", "unsupported"].includes(error.code) ? error.message : null;
}

/** Verifying reads the frames of a later version; what their records mean is not known. Throws `unsupported`. */
function refuseLater(log: TrajectoryLog): void {
  const headers = [...log.journals, ...log.segments].map(({ header }) => header.format_version);
  const version = headers.reduce((a, b) => Math.max(a, b), 0);
  if (version <= FORMAT_VERSION) return;
  const known = `this reader knows up to ${FORMAT_VERSION}`;
  throw new TitoError("unsupported", `written in format version ${version}; ${known}`);
}

/** The file system refuses this user. */
export function isForbidden(error: unknown): boolean {
  return forbiddenCode(error) !== null;
}

/** Of the error, or of the one that led to it. */
function forbiddenCode(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  const { code } = error as NodeJS.ErrnoException;
  return code === "EACCES" || code === "EPERM" ? code : forbiddenCode(error.cause);
}

const NO_IDENTITY: RecordedIdentity = { run_id: null, group_id: null, trial_id: null, attempt: 1, metadata: new Map() };

function firstHeader(dir: string) {
  for (const name of segNames(dir)) {
    for (const item of readRecords(join(dir, name), name, { mode: "tail" })) {
      if (item.kind === "record" && item.named.name === "journal_header") return item.named.record;
      break;
    }
  }
  return null;
}

/**
 * Reads a trajectory, damaged or not. `name` is how it is called in an output; `rules` are a user's own, by which lanes are told apart again.
 * One that cannot be read at all is evidence without turns.
 */
export function readEvidence(dir: string, name: string, rules: readonly LaneRules[] = []): TrajectoryEvidence {
  let log: TrajectoryLog;
  let verdict: TrajectoryVerdict;
  try {
    ({ log, verdict } = readVerified(dir));
    refuseLater(log);
  } catch (error) {
    const why = whyUnreadable(error);
    if (why === null) throw error;
    // Where the trajectory lies on this machine must not change the output.
    const incomplete = [`cannot be read: ${why.replaceAll(`${dir}/`, "")}`];
    return { ...NOTHING, ...readIdentity(dir), path: name, incomplete };
  }
  const header = log.manifest ?? log.journals[0]?.header ?? null;
  const { trajectory_id, identity } = header === null ? readIdentity(dir) : identityOf(header);
  const joined = joinedSegments(log);
  const deliveries = deliveriesOf(log);
  const withTools = toolDigests(log);
  const ordered = turnsInCommitOrder(log);
  const recorded = rebuildLines(log);
  const requests = requestFacts(recorded);
  const lanes = rules.length === 0 ? null : lanesByRules(log, recorded, rules);
  const turns = ordered.map((logged, turn) =>
    evidenceTurn(logged, {
      turn,
      segment: joined.get(logged.segment)!,
      delivery: deliveries.get(logged.record.call_id),
      lane: lanes?.get(logged)?.lane ?? logged.record.lane,
      request: requests.get(logged)!,
      tools_offered: withTools.has(hex(logged.record.tools_sha256)),
    }),
  );
  const segments = segmentsOf(log, joined, turns);
  const areProven = log.gaps.length === 0 && ["complete", "incomplete"].includes(verdict.status);
  const lines = markDamage(segments, areProven);
  return {
    trajectory_id,
    path: name,
    identity,
    segments,
    turns,
    incomplete: incompleteness(log, dir, verdict),
    tampered: firstFinding(verdict, "tampered", dir),
    uncaptured: countBy(log.uncaptured.map((record) => record.reason)),
    ...lastCall(log, turns),
    dangling_calls: danglingCalls(log).length,
    lost_calls: log.uncaptured.filter((record) => record.lost_tokens).length,
    volatile: volatileCosts(recorded, rules),
    sealed: log.complete && log.manifest !== null,
    imported: isImported(log.journals[0]?.header ?? null),
    engine: ordered.at(-1)?.record.engine ?? null,
    prompt_modes: [...new Set(ordered.map((logged) => logged.record.prompt_mode))],
    renderer_contracts: [...new Set(ordered.map((logged) => logged.record.renderer_contract))],
    models: modelFactsOf(log),
    lines,
  };
}

const NOTHING: Omit<TrajectoryEvidence, "trajectory_id" | "path" | "identity" | "incomplete"> = {
  segments: [],
  turns: [],
  tampered: null,
  uncaptured: new Map(),
  last_uncaptured: null,
  ended_ms: -1,
  dangling_calls: 0,
  lost_calls: 0,
  volatile: [],
  sealed: false,
  imported: false,
  engine: null,
  prompt_modes: [],
  renderer_contracts: [],
  models: [],
  lines: null,
};

/** `tito import` names the log that a trajectory was made from. */
function isImported(header: JournalHeader | null): boolean {
  if (header === null) return false;
  try {
    return Object.hasOwn(JSON.parse(header.config_json) as object, "import");
  } catch {
    return false;
  }
}

/** Segment number → number of the segment that it continues, transitively; itself for all others. */
function joinedSegments(log: TrajectoryLog): Map<number, number> {
  const joined = new Map<number, number>();
  for (const { segment, header } of log.segments) {
    const before = header.continues?.segment;
    joined.set(segment, before === undefined || before === segment ? segment : (joined.get(before) ?? before));
  }
  return joined;
}

function segmentsOf(log: TrajectoryLog, joined: Map<number, number>, turns: EvidenceTurn[]): EvidenceSegment[] {
  const segments = new Map<number, EvidenceSegment>();
  for (const { segment, header } of log.segments) {
    const number = joined.get(segment)!;
    if (segments.has(number)) continue;
    const shared = header.continues === null ? header.parent : null;
    const parent = shared === null ? null : { ...shared, segment: joined.get(shared.segment) ?? shared.segment };
    segments.set(number, { segment: number, parent, turns: [] });
  }
  for (const turn of turns) segments.get(turn.segment)!.turns.push(turn);
  return [...segments.values()].filter((segment) => segment.turns.length > 0).sort((a, b) => a.segment - b.segment);
}

function evidenceTurn(
  logged: LoggedTurn,
  known: Pick<EvidenceTurn, "turn" | "segment" | "lane" | "request" | "tools_offered"> & {
    delivery: Delivery | undefined;
  },
): EvidenceTurn {
  const { record, place, commit } = logged;
  return {
    turn: known.turn,
    call_id: record.call_id,
    commit,
    segment: known.segment,
    file: place.file,
    offset: place.offset,
    bytes: place.bytes - place.offset,
    lane: known.lane,
    request: known.request,
    spliced: record.junction !== null,
    finish_reason: record.finish_reason,
    engine: [record.engine.kind, record.engine.version ?? "?", record.engine.model].join(" "),
    defects: record.defects,
    damage: null,
    delivery: known.delivery ?? "unknown",
    malformed: record.malformed,
    sampling: record.sampling,
    logprob_mode: record.logprob_mode,
    weight_versions: record.weight_versions,
    decision: record.decision,
    prompt_keep: record.prompt_keep,
    prompt_suffix: record.prompt_suffix,
    prompt_sha256: record.prompt_sha256,
    seam_tokens: record.junction?.seam_ids.length ?? 0,
    sampled_ids: record.sampled_ids,
    logprobs: record.logprobs,
    message: record.message,
    opens_again: opensAgain(record),
    tools_offered: known.tools_offered,
    usage: record.usage,
    finished_ms: record.times.finished_ms,
  };
}

/** A restarted agent's prompt may differ in a date or a directory; a side call's differs in more. */
const SAME_START = 0.9;

function opensAgain({ decision, messages_new, prompt_keep, prompt_suffix }: LoggedTurn["record"]): boolean {
  const { kept_sampled, match_tokens } = decision.evidence;
  if (decision.kind === "append" || kept_sampled > 0) return false;
  if (match_tokens < SAME_START * (prompt_keep + prompt_suffix.length)) return false;
  return messages_new.every(({ role }) => role !== "assistant" && role !== "tool");
}

/** Digests of tool lists that are not empty. A list is recorded where it first occurs; later turns have its digest only. */
function toolDigests(log: TrajectoryLog): Set<string> {
  const digests = new Set<string>();
  for (const segment of log.segments) {
    for (const { record } of segment.turns) {
      if (record.tools !== null && record.tools.length > 0) digests.add(hex(record.tools_sha256));
    }
  }
  return digests;
}

function hex(digest: Uint8Array): string {
  return Buffer.from(digest).toString("hex");
}

/** Best outcome of a call over all times it was served, replays included. */
function deliveriesOf(log: TrajectoryLog): Map<string, Delivery> {
  const original = new Map(log.replays.map((replay) => [replay.replay_call_id, replay.call_id]));
  const best = new Map<string, Delivery>();
  for (const [served, records] of log.deliveries) {
    const call = original.get(served) ?? served;
    if (best.get(call) === "delivered") continue;
    best.set(call, records.some((record) => record.outcome === "delivered") ? "delivered" : "failed");
  }
  return best;
}

/**
 * What is known to be missing. A torn tail is not: a killed writer leaves it, and the harness never saw that answer complete
 * (if it did, a commit names the turn and the reader reports it as missing).
 */
function incompleteness(log: TrajectoryLog, dir: string, verdict: TrajectoryVerdict): string[] {
  const gaps = log.gaps
    .filter((gap) => gap.reason !== "torn_tail")
    // Where the trajectory lies on this machine must not change the output.
    .map((gap) => `${gap.reason} in ${gap.file}: ${gap.detail.replaceAll(`${dir}/`, "")}`);
  const lost = log.uncaptured
    .filter((record) => record.lost_tokens)
    .map((record) => `call without ids: ${record.reason}`);
  const missing = (log.manifest?.files ?? []).flatMap((file) => {
    const bytes = statSync(join(dir, file.path), { throwIfNoEntry: false })?.size;
    if (bytes === undefined) return [`${file.path} is in the manifest and not there`];
    return bytes < file.bytes ? [`${file.path} has ${bytes} bytes, the manifest says ${file.bytes}`] : [];
  });
  const known = [...gaps, ...lost, ...missing];
  if (known.length > 0) return known;
  const worst = firstFinding(verdict, "tampered", dir) ?? firstFinding(verdict, "damaged", dir);
  return worst === null ? [] : [worst];
}

/** The first finding of a severity, in words that say nothing of where the trajectory lies. */
function firstFinding({ findings }: TrajectoryVerdict, severity: Severity, dir: string): string | null {
  const finding = findings.find((each) => each.severity === severity);
  if (finding === undefined) return null;
  const { code, file, seq, message } = finding;
  return `${severity}: ${code} in ${file}, record ${seq}: ${message.replaceAll(`${dir}/`, "")}`;
}

function lastCall(
  log: TrajectoryLog,
  turns: readonly EvidenceTurn[],
): Pick<TrajectoryEvidence, "last_uncaptured" | "ended_ms"> {
  const last = log.uncaptured.reduce<(typeof log.uncaptured)[number] | null>(
    (newest, record) => (newest === null || record.at_ms >= newest.at_ms ? record : newest),
    null,
  );
  const lastTurnMs = turns.reduce((ms, turn) => Math.max(ms, turn.finished_ms), -1);
  if (last === null || last.at_ms < lastTurnMs) return { last_uncaptured: null, ended_ms: lastTurnMs };
  // The reason alone where it says all: a detail may hold what differs from run to run.
  const worded = last.reason === "engine_refused" ? `${last.reason}: ${last.detail}` : last.reason;
  return { last_uncaptured: worded, ended_ms: last.at_ms };
}

function countBy(names: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}

/** Every file of a trajectory with its digest; paths relative to `root`. */
export function inputFiles(dir: string, root: string): InputFile[] {
  const segments = segNames(join(dir, "segments")).map((name) => join("segments", name));
  const names = ["manifest.json", "COMPLETE", ...segNames(dir), ...segments];
  return digestFiles(
    names.map((name) => join(dir, name)).filter((path) => existsSync(path)),
    root,
  );
}

/** Digests of those files that this user may read; the run says what could not be read. */
export function digestFiles(paths: readonly string[], root: string): InputFile[] {
  return paths.flatMap((path) => {
    try {
      return [digestFile(path, root)];
    } catch (error) {
      if (isForbidden(error)) return [];
      throw error;
    }
  });
}

/** Names of journals or segment files, sorted; the first journal comes before those of later boots. */
function segNames(dir: string): string[] {
  if (!existsSync(dir)) return [];
  const names = namesIn(dir).filter((name) => name.endsWith(".seg"));
  return names.sort((a, b) => a.length - b.length || compareText(a, b));
}

function namesIn(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch (error) {
    if (isForbidden(error)) return [];
    throw error;
  }
}

/** One for all reads of a thread: they do not overlap. */
const readBuffer = Buffer.allocUnsafeSlow(1 << 18);

/** Size and SHA-256 of a file, read in pieces. */
export function digestFile(path: string, root: string): InputFile {
  const hash = createHash("sha256");
  const buffer = readBuffer;
  const fd = openSync(path, "r");
  let bytes = 0;
  try {
    for (let read = readSync(fd, buffer); read > 0; read = readSync(fd, buffer)) {
      hash.update(buffer.subarray(0, read));
      bytes += read;
    }
  } finally {
    closeSync(fd);
  }
  return { path: relative(root, path).split(sep).join("/"), bytes, sha256: hash.digest("hex") };
}
