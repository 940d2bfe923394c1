/**
 * Is a trajectory whole, and is it what was written? Walks every file, keeps of each record what others are compared with, reads the ids of turns once more, and
 * compares the witnesses: checksums, chains, commits, headers, records, manifest, and what was kept outside (anchors, the HMAC key). docs/format.md#verify
 */
import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import {
  bootOfJournal,
  COMPLETE_FILE,
  journalName,
  MANIFEST_FILE,
  SEGMENTS_DIR,
  segmentOfName,
} from "../disk/trajectory-dir.js";
import { MacVerifier } from "../frame/mac.js";
import {
  type ListedFiles,
  listFiles,
  type RecordItem,
  readListed,
  readManifest,
  readRecords,
  unreadableFile,
} from "../read/read-trajectory.js";
import type { LoggedTurn, RecordPlace, TrajectoryLog } from "../read/trajectory-log.js";
import type { AnchoredHead } from "../record/anchors.js";
import { LossCount, losesIds, lossInWords } from "../record/capture-loss.js";
import { TitoError } from "../record/errors.js";
import { LIMITS } from "../record/limits.js";
import { COMPLETE_SCHEMA, type Manifest } from "../record/manifest.js";
import type { NamedRecord } from "../record/record-codec.js";
import type { JournalHeader, SegmentHeader, TurnRecord } from "../record/records.js";
import type { BootSeen, OpenCommit } from "./boot-seen.js";
import { readTurn } from "./slim-record.js";
import { type ExpectedHead, emptyEnd, type FileCheck, type FileEnd, walkFile } from "./verify-file.js";
import {
  checkHeads,
  checkSuccession,
  ExpectedHeads,
  hasHeaderless,
  journalsBefore,
  type Opened,
} from "./verify-heads.js";
import { compareManifest, markCut } from "./verify-manifest.js";
import { fileBytes, readOrNull } from "./verify-sizes.js";
import {
  Findings,
  type Severity,
  type TrajectoryVerdict,
  type VerifyCounts,
  type VerifyOptions,
} from "./verify-types.js";
import { findContradictions } from "./witnesses.js";
import { BodyCheck } from "./witnesses-bodies.js";

const COMPLETE_BYTES_MAX = 4096;

export class Verification {
  private readonly findings = new Findings();
  private readonly counts: VerifyCounts = {
    files: 0,
    bytes: 0,
    records: 0,
    turns: 0,
    sampled_tokens: 0,
    calls: 0,
    gaps: 0,
  };
  private readonly mac: MacVerifier | null = null;
  private readonly macs = new Map<number, { seen: number; last: number }>();
  private readonly ends = new Map<string, FileEnd>();
  /** Links, directories and pipes that stand where files belong. */
  private readonly notFiles = new Map<string, string>();
  private readonly bodies = new BodyCheck();
  private readonly names: ListedFiles;
  /** `file seq` of the turn frame → commit, until it is found. */
  private readonly commits = new Map<string, OpenCommit>();
  private readonly uncommitted: { callId: string; bootId: string | null; place: RecordPlace }[] = [];
  private readonly delivered = new Set<string>();
  /** Calls whose end is known: a turn, a gap, an uncaptured or a replay record. */
  private readonly ended = new Set<string>();
  private readonly gapped = new Set<string>();
  private readonly loss = new LossCount();
  /** The first turn whose evidence is not whole. */
  private firstLoss: RecordPlace | null = null;
  private idsLost = false;
  private readonly asked = new Map<string, RecordPlace>();
  private readonly boots = new Map<string | null, BootSeen>();
  /** Journal file → highest sequence number that an anchor outside confirms. */
  private readonly anchored = new Map<string, number>();
  private readonly journals: Opened<JournalHeader>[];
  private readonly segments: Opened<SegmentHeader>[];
  private readonly bytesTotal: number;
  private readonly trajectoryId: string;
  private manifest: Manifest | null = null;
  private complete = false;

  constructor(
    private readonly dir: string,
    private readonly options: VerifyOptions,
    /** Keeps of a record what the comparison needs; null: the whole record. */
    private readonly slim: ((named: NamedRecord) => NamedRecord) | null,
  ) {
    const names = listFiles(dir);
    this.names = names;
    this.journals = names.journals.map((file) => this.open(file, "journal_header"));
    this.segments = names.segments.map((name) => this.open(`${SEGMENTS_DIR}/${name}`, "segment_header"));
    this.bytesTotal = [...this.journals, ...this.segments].reduce((sum, { file }) => sum + this.sizeOf(file), 0);
    this.readSealFiles();
    const first =
      this.journals.find((item) => item.header !== null) ?? this.segments.find((item) => item.header !== null);
    this.trajectoryId =
      first?.header?.trajectory_id ?? this.manifest?.trajectory_id ?? path.basename(path.resolve(dir));
    if (options.hmacKey !== undefined) this.mac = new MacVerifier(options.hmacKey, this.trajectoryId, this.bytesTotal);
  }

  private sizeOf(file: string): number {
    return fileBytes(path.join(this.dir, file));
  }

  /** Of a boot before the last one, or of one that nobody knows while there were several. */
  private isOfEarlierBoot(file: string): boolean {
    const opened = [...this.journals, ...this.segments].find((item) => item.file === file);
    const last = this.journals.findLast((item) => item.header !== null)?.header?.boot_id;
    const bootId = opened?.header?.boot_id;
    return bootId === undefined ? (this.manifest?.counts.boots ?? 0) > 1 : bootId !== last;
  }

  /** What the files of a boot told about it. */
  private boot(bootId: string | null): BootSeen {
    const known = this.boots.get(bootId);
    if (known !== undefined) return known;
    const headers = this.journals.flatMap(({ header }) =>
      header !== null && header.boot_id === bootId ? [header] : [],
    );
    const boot: BootSeen = {
      sealed: false,
      damaged: false,
      disturbed: false,
      // written without syncs, or its journal broke and was followed by another: the end of that one was never durable
      mayLose: headers.length !== 1 || headers[0]!.durability === "write",
    };
    this.boots.set(bootId, boot);
    return boot;
  }

  /** The header alone. */
  private open<H>(file: string, name: "journal_header" | "segment_header"): Opened<H> {
    try {
      return this.readHeader(file, name);
    } catch (error) {
      if (!TitoError.is(error) || error.code !== "format_invalid") throw error;
      this.findings.addFile("tampered", "wrong_place", file, error.message);
      this.notFiles.set(file, error.message);
      return { file, header: null, torn: true };
    }
  }

  private readHeader<H>(file: string, name: "journal_header" | "segment_header"): Opened<H> {
    for (const item of readRecords(path.join(this.dir, file), file, { mode: "tail" })) {
      const header = item.kind === "record" && item.named.name === name ? (item.named.record as H) : null;
      return { file, header, torn: item.kind === "gap" && item.gap.reason === "torn_tail" };
    }
    return { file, header: null, torn: true };
  }

  private readSealFiles(): void {
    try {
      this.manifest = readManifest(this.dir);
    } catch (error) {
      if (!TitoError.is(error) || error.code === "io") throw error;
      this.findings.addFile("damaged", "manifest_unreadable", MANIFEST_FILE, error.message);
    }
    const file = path.join(this.dir, COMPLETE_FILE);
    this.complete = fs.lstatSync(file, { throwIfNoEntry: false }) !== undefined;
    if (!this.complete) return;
    const manifest = readOrNull(path.join(this.dir, MANIFEST_FILE), LIMITS.manifestBytesMax);
    const sha256 = manifest === null ? null : createHash("sha256").update(manifest).digest("hex");
    const text = readOrNull(file, COMPLETE_BYTES_MAX)?.toString("utf8") ?? "";
    if (!text.includes(`"${COMPLETE_SCHEMA}"`) || sha256 === null || !text.includes(`"${sha256}"`)) {
      // one whose bytes are no manifest any more is damage; a whole one in its place is not
      const severity = sha256 !== null && this.manifest === null ? "damaged" : "tampered";
      this.findings.addFile(severity, "manifest_mismatch", COMPLETE_FILE, "it names another manifest");
    }
  }

  run(): { log: TrajectoryLog; verdict: TrajectoryVerdict } {
    const { findings, dir, slim } = this;
    const expected = this.expectHeads();
    const items = (file: string): Iterable<RecordItem> => this.itemsOf(file, expected);
    const log = readListed(dir, this.names, { mode: "salvage", items, ...(slim === null ? {} : { slim }) });
    const { manifest, complete, ends, counts, journals } = this;
    const isEarlier = (file: string): boolean => this.isOfEarlierBoot(file);
    const check = manifest === null ? null : { manifest, complete, ends, counts, findings, isEarlier };
    if (check !== null) markCut(check);
    checkHeads(expected.all, { journals, ends, findings });
    checkSuccession(expected.all, { journals, ends, findings });
    this.checkCommits();
    this.checkCalls();
    this.checkMacs();
    if (check !== null) compareManifest(check);
    this.compareRecords(log);
    const loss = this.loss.loss;
    if (loss !== null && this.firstLoss !== null)
      findings.add(this.idsLost ? "incomplete" : "note", "lost_ids", this.firstLoss, lossInWords(loss));
    if (!complete) findings.addFile("incomplete", "not_sealed", COMPLETE_FILE, "the trajectory was not sealed");
    const verdict = {
      dir,
      trajectory_id: this.trajectoryId,
      status: findings.status,
      findings: findings.list,
      findings_left_off: findings.leftOff,
      counts,
      capture_loss: loss,
      head: this.lastHead(),
    };
    return { log, verdict };
  }

  private itemsOf(file: string, expected: ExpectedHeads): Iterable<RecordItem> {
    const journal = this.journals.find((item) => item.file === file);
    if (journal !== undefined) return this.walkJournal(journal, expected.of(file));
    return this.walkSegment(this.segments.find((item) => item.file === file)!);
  }

  /** What the records say about each other. Tampering, unless a reference leads to something that is lost. */
  private compareRecords(log: TrajectoryLog): void {
    const { findings, dir, slim } = this;
    const isLossy =
      findings.list.some(({ severity, code }) => severity === "damaged" || code === "turn_missing") ||
      [...this.ends.values()].some((end) => end.damaged);
    const idsOf = (turn: LoggedTurn) => (slim === null ? turn.record : readTurn(dir, turn.place));
    for (const { code, place, message, lossExplains } of findContradictions(log, idsOf))
      findings.add(lossExplains && isLossy ? "damaged" : "tampered", code, place, message);
    for (const { place, message, lossExplains } of this.bodies.found)
      findings.add(lossExplains && isLossy ? "damaged" : "tampered", "body_mismatch", place, message);
  }

  /** What anchors, segment headers and later journals say about the heads that journals had. */
  private expectHeads(): ExpectedHeads {
    const expected = new ExpectedHeads();
    const { anchors } = this.options;
    const own = anchors?.filter((anchor) => anchor.trajectory === this.trajectoryId) ?? [];
    if (anchors !== undefined && own.length === 0) {
      this.findings.addFile(
        "incomplete",
        "not_anchored",
        "journal.seg",
        `no anchor names trajectory ${this.trajectoryId}: nothing outside confirms it`,
      );
    }
    for (const anchor of own) {
      const { seq, bytes } = anchor;
      expected.add(
        [journalName(anchor.boot)],
        "anchor",
        { seq, digest: Buffer.from(anchor.digest, "hex"), bytes },
        "an anchor",
      );
    }
    for (const { file, header } of this.segments) {
      if (header === null || header.previous_head === null) continue;
      const files = this.journals.filter((item) => item.header?.boot_id === header.boot_id).map((item) => item.file);
      expected.add(files, "own", header.previous_head, file);
    }
    this.journals.forEach(({ file, header }, index) => {
      if (header === null || header.previous_head === null) return;
      const before = journalsBefore(this.journals, index).map((item) => item.file);
      expected.add(before, "earlier", header.previous_head, file);
    });
    return expected;
  }

  private *walkJournal(journal: Opened<JournalHeader>, expected: Map<number, ExpectedHead[]>): Generator<RecordItem> {
    const { file, header } = journal;
    const bootId = header?.boot_id ?? null;
    const misplaced = header !== null && header.boot !== bootOfJournal(file);
    this.checkOpening(journal, misplaced);
    this.bodies.startBoot();
    const end = yield* this.walk(file, expected, (named, place) => this.onJournalRecord(named, place, bootId));
    const boot = this.boot(bootId);
    boot.sealed ||= end.sealed && bootId !== null;
    boot.damaged ||= end.damaged;
    boot.disturbed ||= end.torn || end.damaged;
    for (const heads of expected.values()) {
      for (const head of heads) {
        if (head.met && head.kind === "anchor")
          this.anchored.set(file, Math.max(head.seq, this.anchored.get(file) ?? -1));
      }
    }
  }

  private *walkSegment(segment: Opened<SegmentHeader>): Generator<RecordItem> {
    const { file, header } = segment;
    const misplaced = header !== null && header.segment !== segmentOfName(path.basename(file))?.segment;
    this.checkOpening(segment, misplaced);
    const bootId = header?.boot_id ?? null;
    if (header !== null && !this.journals.some((item) => item.header?.boot_id === bootId)) {
      const severity = hasHeaderless(this.journals) ? "damaged" : "tampered";
      const message = "the journal of the boot that wrote this file is not there";
      this.findings.addFile(severity, "file_missing", file, message);
    }
    const turnsBefore = this.counts.turns;
    const end = yield* this.walk(file, new Map(), (named, place) => {
      if (named.name === "turn") this.onTurn(named.record, place, bootId);
      else if (named.name === "segment_header" && place.seq > 0) this.misplacedRecord(named, place);
      else if (!["segment_header", "seal", "parked"].includes(named.name)) this.misplacedRecord(named, place);
    });
    this.boot(bootId).disturbed ||= end.torn || end.damaged || this.counts.turns === turnsBefore;
  }

  private misplacedRecord(named: NamedRecord, place: RecordPlace): void {
    this.findings.add("tampered", "wrong_place", place, `a ${named.name} record has no place here`);
  }

  private *walk(
    file: string,
    expected: Map<number, ExpectedHead[]>,
    onRecord: (named: NamedRecord, place: RecordPlace) => void,
  ): Generator<RecordItem, FileEnd> {
    const { dir, findings, mac, macs, counts } = this;
    const tornSeverity = this.complete ? "note" : "incomplete";
    const check: FileCheck = { dir, file, findings, mac, macs, tornSeverity, expected, onRecord };
    const notFile = this.notFiles.get(file);
    let end: FileEnd;
    if (notFile === undefined) end = yield* walkFile(check, this.sizeOf(file));
    else {
      yield { kind: "gap", gap: unreadableFile(file, notFile) };
      end = { ...emptyEnd(file, 0), damaged: true };
    }
    this.ends.set(file, end);
    counts.files++;
    counts.bytes += end.bytes;
    counts.records += end.records;
    this.options.onProgress?.({ file, bytes: counts.bytes, bytesTotal: this.bytesTotal });
    return end;
  }

  /** The first record is the file's header, and the header says this trajectory and this number. */
  private checkOpening(opened: Opened<JournalHeader | SegmentHeader>, misplaced: boolean): void {
    const { file, header } = opened;
    if (header === null) {
      // a writer that is killed between creating a file and the end of its first write leaves an empty or torn one
      const severity = !opened.torn ? "damaged" : this.complete ? "note" : "incomplete";
      this.findings.addFile(severity, "no_header", file, "the file has no header record");
    } else if (misplaced || header.trajectory_id !== this.trajectoryId) {
      this.findings.addFile("tampered", "wrong_place", file, "its header names another trajectory, segment or boot");
    }
  }

  private onJournalRecord(named: NamedRecord, place: RecordPlace, bootId: string | null): void {
    switch (named.name) {
      case "intent":
        this.asked.set(named.record.call_id, place);
        this.bodies.add(named.record.call_id, named.record.body, place);
        this.counts.calls = this.asked.size;
        return;
      case "commit":
        this.commits.set(`${named.record.file} ${named.record.seq}`, {
          commit: named.record,
          journal: place.file,
          bootId,
          place,
        });
        return;
      case "delivery":
        if (named.record.outcome === "delivered") this.delivered.add(named.record.call_id);
        return;
      case "replay":
        this.ended.add(named.record.replay_call_id);
        return;
      case "uncaptured":
        this.ended.add(named.record.call_id);
        this.loss.uncaptured(named.record);
        if (named.record.lost_tokens)
          this.findings.add("incomplete", "lost_call", place, `call ${named.record.call_id}: ${named.record.reason}`);
        return;
      case "gap":
        this.onGap(named.record.call_id, named.record.reason, place);
        return;
      case "journal_header":
        if (place.seq > 0) this.misplacedRecord(named, place);
        return;
      case "lifecycle":
      case "seal":
        return;
      case "segment_header":
      case "turn":
      case "parked":
        this.misplacedRecord(named, place);
    }
  }

  private onGap(callId: string | null, reason: string, place: RecordPlace): void {
    this.counts.gaps++;
    this.findings.add("incomplete", "recorded_gap", place, callId === null ? reason : `call ${callId}: ${reason}`);
    if (callId === null) return;
    this.ended.add(callId);
    this.gapped.add(callId);
  }

  private onTurn(turn: TurnRecord, place: RecordPlace, bootId: string | null): void {
    this.counts.turns++;
    this.counts.sampled_tokens += turn.sampled_ids.length;
    this.ended.add(turn.call_id);
    if (this.loss.turn(turn).length > 0) this.firstLoss ??= place;
    this.idsLost ||= losesIds(turn.defects);
    const key = `${place.file} ${place.seq}`;
    const waiting = this.commits.get(key);
    if (waiting === undefined) {
      this.uncommitted.push({ callId: turn.call_id, bootId, place });
      return;
    }
    this.commits.delete(key);
    const { digest, bytes, call_id } = waiting.commit;
    if (call_id !== turn.call_id || bytes !== place.bytes || Buffer.compare(digest, place.digest) !== 0) {
      this.findings.add(
        "tampered",
        "turn_replaced",
        place,
        `commit ${waiting.commit.commit} names another turn at this place`,
      );
    }
  }

  /** Commits without a turn, and turns without a commit. */
  private checkCommits(): void {
    for (const { commit, journal, bootId, place } of this.commits.values()) {
      const end = this.ends.get(commit.file);
      const boot = this.boot(bootId);
      const released = this.delivered.has(commit.call_id) || (this.anchored.get(journal) ?? -1) >= place.seq;
      const what = `commit ${commit.commit} (call ${commit.call_id}) names record ${commit.seq} of ${commit.file}, which is not there`;
      boot.disturbed = true;
      // its end is known: it was recorded, and is gone
      this.ended.add(commit.call_id);
      if (this.gapped.has(commit.call_id)) continue;
      const code = end === undefined && (boot.sealed || released) ? "file_missing" : "turn_missing";
      if (end?.damaged) this.findings.add("damaged", "turn_missing", place, what);
      else if (boot.sealed || released) this.findings.add(boot.mayLose ? "damaged" : "tampered", code, place, what);
      // a power cut between the two syncs of one commit leaves the journal ahead of the segment; nothing was released
      else this.findings.add("incomplete", "turn_missing", place, what);
    }
    for (const { callId, bootId, place } of this.uncommitted) {
      const boot = this.boot(bootId);
      boot.disturbed = true;
      if (this.gapped.has(callId)) continue;
      const severity = boot.damaged ? "damaged" : !boot.sealed ? "note" : boot.mayLose ? "damaged" : "tampered";
      this.findings.add(severity, "turn_without_commit", place, `no commit names the turn of call ${callId}`);
    }
  }

  private checkCalls(): void {
    for (const [callId, place] of this.asked) {
      if (this.ended.has(callId)) continue;
      this.findings.add("incomplete", "dangling_call", place, `call ${callId} was asked and its end is not known`);
    }
  }

  /** Numbers of keyed digests have no hole, except where unsynced records went with the power: then something else shows it. */
  private checkMacs(): void {
    for (const [number, { seen, last }] of this.macs) {
      if (seen === last + 1) continue;
      const bootId = this.journals.find((item) => item.header?.boot === number)?.header?.boot_id;
      const severity = this.counts.gaps > 0 ? "incomplete" : this.severityOfLostNumbers(bootId);
      const message = `${last + 1} records were signed in this boot and ${seen} are there`;
      this.findings.addFile(severity, "mac_missing", journalName(number), message);
    }
  }

  private severityOfLostNumbers(bootId: string | undefined): Severity {
    if (bootId === undefined) return "damaged";
    const { disturbed, sealed, damaged, mayLose } = this.boot(bootId);
    if (disturbed && !sealed) return "incomplete";
    return damaged || mayLose ? "damaged" : "tampered";
  }

  private lastHead(): AnchoredHead | null {
    for (const { file, header } of [...this.journals].reverse()) {
      const head = this.ends.get(file)?.head;
      if (header === null || head === null || head === undefined) continue;
      const digest = Buffer.from(head.digest).toString("hex");
      return { trajectory: this.trajectoryId, boot: header.boot, seq: head.seq, digest, bytes: head.bytes };
    }
    return null;
  }
}
