/** Reads segment files, journals and whole trajectories into plain records. */
import fs from "node:fs";
import path from "node:path";
import { type Disk, errorCode, nodeDisk, systemMessage } from "../disk/disk.js";
import { readSmallFile } from "../disk/read-small.js";
import { bootOfJournal, COMPLETE_FILE, MANIFEST_FILE, SEGMENTS_DIR, segmentOfName } from "../disk/trajectory-dir.js";
import { rebuildBodyFrom } from "../record/body-delta.js";
import { TitoError } from "../record/errors.js";
import { LIMITS } from "../record/limits.js";
import { type Manifest, parseManifest } from "../record/manifest.js";
import { decodeRecord, type NamedRecord } from "../record/record-codec.js";
import { type CommitRecord, FORMAT_VERSION, type SegmentHeader } from "../record/records.js";
import { type FrameItem, type ReadMode, type ScanOptions, scanFile } from "./scan.js";
import type {
  JournalFile,
  LogGap,
  LoggedTurn,
  RecordPlace,
  SegmentFile,
  SegmentLog,
  TrajectoryLog,
} from "./trajectory-log.js";

export interface ReadOptions {
  mode: ReadMode;
  disk?: Disk;
}

/** Where the records of a trajectory's files come from, and how much of them is kept. */
interface LogOptions extends ReadOptions {
  /** Stands in for {@link readRecords}; walked to its end. Record versions are then its business. */
  items?: (file: string) => Iterable<RecordItem>;
  /** Replaces a turn or an intent by what of it has to be kept. */
  slim?: (named: NamedRecord) => NamedRecord;
}

/** A record with its place, or a gap. */
export type RecordItem =
  | { kind: "record"; named: NamedRecord; place: RecordPlace }
  | { kind: "optional"; type: number; payload: Buffer; place: RecordPlace }
  | { kind: "gap"; gap: LogGap };

/**
 * The records of one file, one at a time. `file` is the name that goes into places and gaps.
 * An unreadable record throws in strict mode; in `tail` mode it ends the walk; in `salvage` it is a gap and the walk goes on.
 */
export function* readRecords(filePath: string, file: string, options: ScanOptions): Generator<RecordItem, void, void> {
  for (const item of scanFile(filePath, options)) {
    if (item.kind === "gap") {
      const detail = `${item.reason} where record ${item.seq} was expected`;
      yield {
        kind: "gap",
        gap: {
          reason: item.reason,
          file,
          offset: item.offset,
          bytes: item.bytes,
          seq: item.seq,
          call_id: null,
          detail,
        },
      };
      continue;
    }
    const place: RecordPlace = { file, seq: item.seq, offset: item.offset, bytes: item.end, digest: item.digest };
    const read = decodeFrame(item, place, options.mode);
    yield read;
    if (read.kind === "gap" && options.mode === "tail") return;
  }
}

function decodeFrame(item: FrameItem, place: RecordPlace, mode: ReadMode): RecordItem {
  try {
    const named = decodeRecord(item.type, item.payload, `${place.file} offset ${place.offset} record ${place.seq}`);
    if (named === null) return { kind: "optional", type: item.type, payload: item.payload, place };
    return { kind: "record", named, place };
  } catch (error) {
    if (!TitoError.is(error) || mode === "strict") throw error;
    const { file, offset, seq } = place;
    const gap: LogGap = {
      reason: "unreadable",
      file,
      offset,
      bytes: item.end - item.offset,
      seq,
      call_id: null,
      detail: error.message,
    };
    return { kind: "gap", gap };
  }
}

/** Reads one segment file. `boot` is 0 until the trajectory's journals say which boot wrote it. Throws `damaged` when it is no segment file. */
export function readSegment(filePath: string, options: ReadOptions): SegmentFile {
  const read = walkSegment(filePath, options);
  if ("segment" in read) return read.segment;
  throw new TitoError("damaged", `${filePath}: ${read.problem}`);
}

/** The file, or why it is none; `torn` when its writer died before the header was whole. */
function walkSegment(
  filePath: string,
  options: LogOptions,
): { segment: SegmentFile } | { problem: string; torn: boolean } {
  const file = `${SEGMENTS_DIR}/${path.basename(filePath)}`;
  const gaps: LogGap[] = [];
  let segment: SegmentFile | null = null;
  let headless = false;
  for (const item of itemsOf(filePath, file, options)) {
    if (headless) continue;
    if (item.kind === "gap") {
      gaps.push(item.gap);
      continue;
    }
    const { place } = item;
    if (segment === null) {
      const header = firstHeader(item, path.basename(filePath), options.mode);
      if (header === null) {
        headless = true;
        continue;
      }
      if (options.items === undefined) checkVersion(header.format_version, file);
      const part = segmentOfName(path.basename(filePath))?.part ?? 1;
      const head = { seq: 0, digest: place.digest, bytes: place.bytes };
      segment = { file, part, header, turns: [], sealed: null, parked: null, gaps, bytes: 0, records: 0, head };
    }
    segment.head = { seq: place.seq, digest: place.digest, bytes: place.bytes };
    segment.records++;
    if (item.kind !== "record") continue;
    const named = options.slim === undefined ? item.named : options.slim(item.named);
    if (named.name === "turn") {
      segment.turns.push({ record: named.record, place, segment: segment.header.segment, boot: 0, commit: null });
    } else if (named.name === "seal") segment.sealed = named.record;
    else if (named.name === "parked") segment.parked = named.record;
  }
  if (headless) return { problem: "no segment header can be read", torn: false };
  if (segment === null) {
    const torn = gaps.every((gap) => gap.reason === "torn_tail");
    return {
      problem: torn ? "no segment header: its writer died before it was whole" : "no segment header can be read",
      torn,
    };
  }
  segment.bytes = fs.statSync(filePath).size;
  return { segment };
}

/**
 * The header that a file begins with. In salvage mode a lost one is stood in for by what the file's name says, so that one bad record does not hide the
 * turns after it: what they build on is then known only where their prompt digests confirm it. Null when this is no segment file.
 */
function firstHeader(item: RecordItem, name: string, mode: ReadMode): SegmentHeader | null {
  if (item.kind === "record" && item.named.name === "segment_header") return item.named.record;
  const place = segmentOfName(name);
  const lost = item.kind !== "gap" && item.place.seq > 0;
  if (mode !== "salvage" || !lost || place === null) return null;
  return {
    format_version: FORMAT_VERSION,
    writer_version: "",
    trajectory_id: "",
    segment: place.segment,
    boot_id: "",
    config_sha256: new Uint8Array(32),
    created_ms: 0,
    previous_head: null,
    parent: null,
    continues: place.part > 1 ? { segment: place.segment, why: "recovered" } : null,
  };
}

function checkVersion(version: number, file: string): void {
  if (version > FORMAT_VERSION) {
    throw new TitoError(
      "unsupported",
      `${file}: written in format version ${version}; this reader knows up to ${FORMAT_VERSION}`,
      {
        hint: "read it with a later version of tito",
      },
    );
  }
}

/**
 * Reads a trajectory directory. In `strict` mode anything irregular throws; else what can not be read is in `gaps`.
 * Throws `not_found` when the directory holds no trajectory.
 */
export function readTrajectory(dir: string, options: ReadOptions): TrajectoryLog {
  return readListed(dir, listFiles(dir, options.disk), options);
}

/** As {@link readTrajectory}, from the files that were listed. */
export function readListed(dir: string, names: ListedFiles, options: LogOptions): TrajectoryLog {
  const log: TrajectoryLog = {
    dir,
    trajectory_id: path.basename(path.resolve(dir)),
    manifest: null,
    complete: fs.existsSync(path.join(dir, COMPLETE_FILE)),
    journals: [],
    segments: [],
    gaps: [],
    commits: [],
    intents: new Map(),
    deliveries: new Map(),
    replays: [],
    uncaptured: [],
    lifecycle: [],
    recorded_gaps: [],
  };
  try {
    log.manifest = readManifest(dir);
  } catch (error) {
    if (!TitoError.is(error) || options.mode === "strict") throw error;
    log.gaps.push(unreadableFile(MANIFEST_FILE, error.message));
  }
  for (const name of names.journals) readJournal(log, dir, name, options);
  const files: SegmentFile[] = [];
  for (const name of names.segments) {
    const file = `${SEGMENTS_DIR}/${name}`;
    try {
      const read = walkSegment(path.join(dir, file), options);
      if ("segment" in read) files.push(read.segment);
      else if (options.mode === "strict") throw new TitoError("damaged", `${path.join(dir, file)}: ${read.problem}`);
      else log.gaps.push({ ...unreadableFile(file, read.problem), reason: read.torn ? "torn_tail" : "unreadable" });
    } catch (error) {
      if (!isUnreadable(error) || options.mode === "strict") throw error;
      log.gaps.push(unreadableFile(file, error.message));
    }
  }
  const named = [...log.journals, ...files].find((file) => file.header.trajectory_id !== "");
  log.trajectory_id = named?.header.trajectory_id ?? log.trajectory_id;
  assignCommits(log, files);
  log.segments = groupSegments(files);
  for (const file of files) log.gaps.push(...file.gaps);
  return log;
}

/** A file that nobody could read, as against a file system that fails just now: no descriptor left, a device that does not answer. */
function isUnreadable(error: unknown): error is TitoError {
  if (!TitoError.is(error)) return false;
  return error.code !== "io" || NEVER_OPENS.has(errorCode(error.cause) ?? "");
}

/** A link, a socket, a file that went or is not ours: it can not be opened now, nor later. */
export const NEVER_OPENS: ReadonlySet<string> = new Set(["ELOOP", "ENXIO", "ENOENT", "EACCES", "EPERM"]);

export function unreadableFile(file: string, detail: string): LogGap {
  return { reason: "unreadable", file, offset: 0, bytes: 0, seq: 0, call_id: null, detail };
}

function itemsOf(filePath: string, file: string, options: LogOptions): Iterable<RecordItem> {
  return options.items === undefined ? readRecords(filePath, file, options) : options.items(file);
}

/** Names of a trajectory's files, sorted by number; segments without their folder. */
export interface ListedFiles {
  journals: string[];
  segments: string[];
}

export function listFiles(dir: string, disk: Disk = nodeDisk): ListedFiles {
  const journals = readNames(dir, disk).filter((name) => bootOfJournal(name) !== null);
  const segments = readNames(path.join(dir, SEGMENTS_DIR), disk).filter((name) => segmentOfName(name) !== null);
  if (journals.length === 0 && segments.length === 0 && !fs.existsSync(path.join(dir, MANIFEST_FILE))) {
    throw new TitoError("not_found", `${dir}: no trajectory is here (no journal, no segments/*.seg, no manifest.json)`);
  }
  journals.sort((a, b) => bootOfJournal(a)! - bootOfJournal(b)!);
  segments.sort((a, b) => {
    const [left, right] = [segmentOfName(a)!, segmentOfName(b)!];
    return left.segment - right.segment || left.part - right.part;
  });
  return { journals, segments };
}

/** Names in a directory; none when it is not there. */
export function readNames(dir: string, disk: Disk = nodeDisk): string[] {
  try {
    return disk.readdir(dir);
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code;
    if (code === "ENOENT" || code === "ENOTDIR") return [];
    throw new TitoError("io", `${dir}: ${systemMessage(cause)}`, { cause });
  }
}

/** The manifest, or null when there is none. Throws `format_invalid` when it is not one. */
export function readManifest(dir: string): Manifest | null {
  const file = path.join(dir, MANIFEST_FILE);
  const bytes = readSmallFile(file, LIMITS.manifestBytesMax);
  return bytes === null ? null : parseManifest(bytes.toString("utf8"), file);
}

function readJournal(log: TrajectoryLog, dir: string, file: string, options: LogOptions): void {
  const filePath = path.join(dir, file);
  let journal: JournalFile | null = null;
  const gaps: LogGap[] = [];
  for (const item of itemsOf(filePath, file, options)) {
    if (item.kind === "gap") {
      gaps.push(item.gap);
      continue;
    }
    const head = { seq: item.place.seq, digest: item.place.digest, bytes: item.place.bytes };
    if (item.kind === "record" && item.named.name === "journal_header" && journal === null) {
      const header = item.named.record;
      if (options.items === undefined) checkVersion(header.format_version, file);
      journal = { file, boot: header.boot, header, sealed: null, gaps, bytes: 0, records: 0, head };
    }
    if (journal !== null) {
      journal.head = head;
      journal.records++;
    }
    if (item.kind !== "record") continue;
    const named = options.slim === undefined ? item.named : options.slim(item.named);
    addJournalRecord(log, journal, named, item.place);
  }
  log.gaps.push(...gaps);
  if (journal === null) return;
  journal.bytes = fs.statSync(filePath).size;
  log.journals.push(journal);
}

function addJournalRecord(
  log: TrajectoryLog,
  journal: JournalFile | null,
  named: NamedRecord,
  place: RecordPlace,
): void {
  switch (named.name) {
    case "intent":
      log.intents.set(named.record.call_id, named.record);
      return;
    case "commit":
      log.commits.push(named.record);
      return;
    case "delivery": {
      const earlier = log.deliveries.get(named.record.call_id);
      if (earlier === undefined) log.deliveries.set(named.record.call_id, [named.record]);
      else earlier.push(named.record);
      return;
    }
    case "replay":
      log.replays.push(named.record);
      return;
    case "uncaptured":
      log.uncaptured.push(named.record);
      return;
    case "lifecycle":
      log.lifecycle.push(named.record);
      return;
    case "gap": {
      const { call_id, reason } = named.record;
      log.recorded_gaps.push(named.record);
      log.gaps.push({
        reason: "recorded",
        file: place.file,
        offset: place.offset,
        bytes: 0,
        seq: place.seq,
        call_id,
        detail: reason,
      });
      return;
    }
    case "seal":
      if (journal !== null) journal.sealed = named.record;
      return;
    case "journal_header":
    case "segment_header":
    case "turn":
    case "parked":
      return;
  }
}

/** Gives each turn its boot and commit number; a commit whose turn is not there is a gap. */
function assignCommits(log: TrajectoryLog, files: readonly SegmentFile[]): void {
  const bootOfId = new Map<string, number>();
  for (const journal of log.journals)
    if (!bootOfId.has(journal.header.boot_id)) bootOfId.set(journal.header.boot_id, journal.boot);
  const turns = new Map<string, LoggedTurn>();
  for (const file of files) {
    for (const turn of file.turns) {
      turn.boot = bootOfId.get(file.header.boot_id) ?? 0;
      turns.set(`${turn.place.file} ${turn.place.seq}`, turn);
    }
  }
  log.commits.sort((a, b) => a.commit - b.commit);
  for (const commit of log.commits) {
    const turn = turns.get(`${commit.file} ${commit.seq}`);
    if (turn !== undefined && turn.record.call_id === commit.call_id) turn.commit = commit.commit;
    else log.gaps.push(missingTurn(commit));
  }
}

function missingTurn(commit: CommitRecord): LogGap {
  const { file, seq, call_id } = commit;
  return {
    reason: "missing",
    file,
    offset: commit.bytes,
    bytes: 0,
    seq,
    call_id,
    detail: `turn of commit ${commit.commit} is not there`,
  };
}

function groupSegments(files: readonly SegmentFile[]): SegmentLog[] {
  const segments = new Map<number, SegmentLog>();
  for (const file of files) {
    const known = segments.get(file.header.segment);
    if (known === undefined) {
      const { header } = file;
      segments.set(header.segment, {
        segment: header.segment,
        header,
        files: [file],
        turns: [],
        sealed: false,
        parked: false,
        gaps: [],
      });
    } else known.files.push(file);
  }
  for (const segment of segments.values()) {
    const last = segment.files.at(-1)!;
    segment.turns = segment.files.flatMap((file) => file.turns);
    segment.gaps = segment.files.flatMap((file) => file.gaps);
    segment.sealed = last.sealed !== null;
    segment.parked = last.parked !== null;
  }
  return [...segments.values()].sort((a, b) => a.segment - b.segment);
}

/** The request body of a call, byte for byte as it was received. Throws `not_found` without an intent, `damaged` when it can not be rebuilt. */
export function rebuildBody(log: TrajectoryLog, callId: string): Uint8Array {
  if (!log.intents.has(callId)) throw new TitoError("not_found", `${log.dir}: call ${callId} has no intent record`);
  return rebuildBodyFrom((id) => log.intents.get(id)?.body, callId);
}

/** Many programs write a manifest.json; ours names its schema. */
function isOurManifest(file: string): boolean {
  return fs.statSync(file).size <= LIMITS.manifestBytesMax && fs.readFileSync(file, "utf8").includes('"tito.manifest/');
}

/**
 * Every directory at or below `paths` that holds a manifest.json of ours, a journal or segments/*.seg, sorted, each once. Links are not followed.
 * Throws `not_found` for a directory that can not be listed, unless `onUnlisted` takes the error.
 */
export function findTrajectories(
  paths: readonly string[],
  onUnlisted: (error: TitoError) => void = (error) => {
    throw error;
  },
): string[] {
  const found = new Set<string>();
  const walk = (dir: string): void => {
    let entries: fs.Dirent[];
    try {
      entries = fs.readdirSync(dir, { withFileTypes: true });
    } catch (cause) {
      onUnlisted(new TitoError("not_found", `${dir}: cannot be listed (${systemMessage(cause)})`, { cause }));
      return;
    }
    const names = new Set(entries.map((entry) => entry.name));
    const isTrajectory = entries.some(
      (entry) =>
        entry.isFile() &&
        (bootOfJournal(entry.name) !== null ||
          (entry.name === MANIFEST_FILE && isOurManifest(path.join(dir, entry.name)))),
    );
    if (
      isTrajectory ||
      (names.has(SEGMENTS_DIR) && readNames(path.join(dir, SEGMENTS_DIR)).some((name) => name.endsWith(".seg")))
    ) {
      found.add(dir);
    }
    for (const entry of entries) {
      if (entry.isDirectory() && entry.name !== SEGMENTS_DIR) walk(path.join(dir, entry.name));
    }
  };
  for (const start of paths) walk(path.resolve(start));
  return [...found].sort();
}
