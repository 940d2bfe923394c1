/**
 * The writer of one trajectory: intents and deliveries are written, turns are durable before their promise resolves. One process, new files only.
 * Whatever goes wrong with the disk makes the trajectory `degraded` at once, with a reason and, as far as anything can still be written, a gap record.
 * docs/format.md#writer describes the order of system calls.
 */
import { randomBytes } from "node:crypto";
import { Ballast } from "../disk/ballast.js";
import { errorCode, nodeDisk, systemMessage } from "../disk/disk.js";
import {
  COMPLETE_FILE,
  markUnsound,
  openTrajectoryDir,
  releaseBoot,
  type TrajectoryDir,
  takeBoot,
} from "../disk/trajectory-dir.js";
import { Tally } from "../read/tally.js";
import type { AnchoredHead } from "../record/anchors.js";
import { BodyStore } from "../record/body-delta.js";
import { sha256 } from "../record/digest.js";
import { TitoError } from "../record/errors.js";
import { LIMITS } from "../record/limits.js";
import type { Manifest } from "../record/manifest.js";
import { encodeRecord } from "../record/record-codec.js";
import { type CommitRecord, type LifecycleRecord, type RecordMap, RecordType } from "../record/records.js";
import type { Place } from "./frame-file.js";
import { Journal, type JournalHead } from "./journal.js";
import { LineLengths } from "./line-lengths.js";
import { checkSound, makeDurable, partsEverBegun, recover } from "./recover.js";
import { type OpenSegment, SegmentPool } from "./segment-pool.js";
import { Troubles } from "./troubles.js";
import {
  describeTrajectory,
  listManifestFiles,
  type ManifestEntry,
  manifestEntries,
  writeManifest,
} from "./write-manifest.js";
import type {
  CommitInput,
  IntentInput,
  JournalRecordName,
  Recovered,
  SealAnswer,
  SealInput,
  TrajectoryWriterOptions,
  WriterState,
} from "./writer-types.js";

/**
 * Opens a writer on `out/trajectoryId`, new or left by an earlier process. Throws `already_exists` while another live process writes it,
 * `trajectory_sealed` when it is complete, `cannot_write` when it can not be created.
 */
export async function createTrajectoryWriter(options: TrajectoryWriterOptions): Promise<TrajectoryWriter> {
  const disk = options.disk ?? nodeDisk;
  const dir = await openTrajectoryDir(disk, options.out, options.trajectoryId);
  let boot: number | null = null;
  try {
    const names = disk.readdir(dir.root.at("."));
    if (names.includes(COMPLETE_FILE)) {
      throw new TitoError("trajectory_sealed", `${dir.root.path} is sealed`, { hint: "use another --trajectory-id" });
    }
    checkSound(dir, names);
    boot = takeBoot(dir);
    const recovered = boot === 1 ? null : await recover(dir, options.durability ?? "fsync");
    return await TrajectoryWriter.start(options, dir, boot, recovered);
  } catch (cause) {
    if (boot !== null) releaseBoot(dir, boot);
    dir.segments.close();
    dir.root.close();
    if (TitoError.is(cause) && cause.code !== "io") throw cause;
    throw new TitoError("cannot_write", `${dir.root.path}: ${systemMessage(cause)}`, { cause });
  }
}

/** A turn and its commit that wait for the device. */
interface Appended {
  segment: OpenSegment;
  commit: CommitRecord;
  /** Head of the journal right after the commit. */
  place: JournalHead;
}

export class TrajectoryWriter {
  private earlier: Recovered | null;
  /** Files of earlier boots, as the manifest lists them. */
  private readonly earlierFiles: ReadonlyMap<string, ManifestEntry>;
  private readonly options: TrajectoryWriterOptions;
  private readonly dir: TrajectoryDir;
  private readonly journal: Journal;
  private readonly segments: SegmentPool;
  private readonly ballast: Ballast;
  private bodies = new BodyStore();
  private readonly tally: Tally;
  private readonly now: () => number;
  private readonly lines: LineLengths;
  private degraded: string | null = null;
  private ended: "sealed" | "abandoned" | null = null;
  private readonly troubles: Troubles;
  private nextCommit: number;
  private anchorable: JournalHead;
  /** What was only written could not be synced for the seal: the end of no file is sure. */
  private unsynced = false;
  /** Commits that are appended and not settled. */
  private pending = 0;
  /** Settles when all commits so far have: anchors and seal keep the order. */
  private settled: Promise<void> = Promise.resolve();

  private constructor(
    options: TrajectoryWriterOptions,
    dir: TrajectoryDir,
    boot: number,
    recovered: Recovered | null,
    ballast: Ballast,
  ) {
    this.options = options;
    this.dir = dir;
    this.earlier = recovered;
    this.earlierFiles = manifestEntries(recovered?.log ?? null);
    this.now = options.now ?? Date.now;
    this.tally = new Tally(recovered?.log ?? null);
    const log = recovered?.log;
    this.nextCommit = (log?.commits.at(-1)?.commit ?? 0) + 1;
    const parts = partsEverBegun(dir, log);
    this.lines = new LineLengths(recovered, Math.max(0, ...parts.keys()));
    this.ballast = ballast;
    const bootId = randomBytes(16).toString("hex");
    const configSha256 = sha256(Buffer.from(options.configJson));
    this.journal = new Journal({
      dir,
      boot,
      bootId,
      configSha256,
      now: this.now,
      writer: options,
      previous: log?.journals.at(-1)?.head ?? null,
    });
    this.anchorable = { boot, head: this.journal.head };
    this.troubles = new Troubles(this.journal);
    this.segments = new SegmentPool(
      {
        dir,
        durability: options.durability ?? "fsync",
        mac: this.journal.mac,
        now: this.now,
        writerVersion: options.writerVersion,
        trajectoryId: options.trajectoryId,
        bootId,
        configSha256,
        journalHead: () => this.journal.durableHead,
      },
      parts,
    );
  }

  /** Used by {@link createTrajectoryWriter}. */
  static async start(
    options: TrajectoryWriterOptions,
    dir: TrajectoryDir,
    boot: number,
    recovered: Recovered | null,
  ): Promise<TrajectoryWriter> {
    const ballast = new Ballast(dir.root);
    let writer: TrajectoryWriter | null = null;
    try {
      writer = new TrajectoryWriter(options, dir, boot, recovered, ballast);
      const event = recovered === null ? "start" : "recovered";
      const detail = `boot ${boot}`;
      writer.journal.append("lifecycle", { event, detail, at_ms: writer.now() });
      await writer.journal.sync();
      writer.anchorable = writer.journal.durablePlace ?? writer.anchorable;
      return writer;
    } catch (error) {
      writer?.journal.close();
      ballast.drop();
      throw error;
    } finally {
      options.hmacKey?.fill(0);
    }
  }

  /** What earlier boots left; null for a new trajectory, and once it was forgotten. */
  get recovered(): Recovered | null {
    return this.earlier;
  }

  /** Frees what earlier boots left, once the caller has taken what it needs. */
  forgetRecovered(): void {
    this.earlier = null;
  }

  get state(): WriterState {
    return this.degraded === null ? { kind: "ok" } : { kind: "degraded", reason: this.degraded };
  }

  /** Open segment files. */
  get segmentsOpen(): number {
    return this.segments.openCount;
  }

  /** Number that the next opened segment gets. */
  get nextSegment(): number {
    return this.lines.nextSegment;
  }

  /** Path of the trajectory's directory. */
  get path(): string {
    return this.dir.root.path;
  }

  /**
   * Head of the journal that may be anchored: a power cut leaves it, and every turn that the journal names up to there. A commit whose turn is not
   * durable yet, or never will be, lies behind it, or has its gap before it.
   */
  head(): AnchoredHead {
    const { boot, head } = this.anchorable;
    const { seq, digest, bytes } = head;
    return { trajectory: this.options.trajectoryId, boot, seq, digest: Buffer.from(digest).toString("hex"), bytes };
  }

  /** Notes a call before the engine is asked. Written, not synced; a failing disk degrades the writer and does not throw. */
  writeIntent(intent: IntentInput): void {
    this.requireOpen();
    const { body, ...rest } = intent;
    this.appendQuietly("intent", { ...rest, body: this.bodies.encode(intent.call_id, body) });
    this.tally.intent(intent.call_id);
  }

  /** Notes whether the harness got an answer. Written, not synced. */
  writeDelivery(delivery: RecordMap["delivery"]): void {
    this.writeJournal("delivery", delivery);
  }

  /** Writes one journal record; not synced. Throws only when the record itself is invalid. */
  writeJournal<K extends JournalRecordName>(name: K, record: RecordMap[K]): void {
    this.requireOpen();
    this.appendQuietly(name, record);
    this.tally.journal(name, record);
  }

  private appendQuietly<K extends "intent" | JournalRecordName>(name: K, record: RecordMap[K]): void {
    const payload = encodeRecord(name, record);
    if (this.degraded !== null && this.journal.broken) return;
    try {
      this.journal.appendPayload(name, payload);
    } catch (error) {
      this.degrade(`the journal can not be written: ${errorCode(error) ?? systemMessage(error)}`, null);
    }
  }

  /**
   * Records a turn. Calls must come in the order of decisions; the place in that order is taken before this returns. The promise resolves when turn and
   * commit frame are durable. It rejects with `format_invalid` or `format_limit` when the record can not be written as it is (a gap is recorded and
   * the writer stays `ok`), and with `capture_degraded` when the disk fails or failed.
   */
  commitTurn(input: CommitInput): Promise<CommitRecord> {
    if (this.ended !== null) return Promise.reject(this.endedError());
    const { turn } = input;
    if (this.degraded !== null) {
      this.recordGap(turn.call_id, `not recorded: ${this.degraded}`);
      return Promise.reject(this.degradedError());
    }
    let payload: Uint8Array;
    try {
      this.lines.check(input, (segment) => this.segments.has(segment));
      payload = encodeRecord("turn", turn);
    } catch (error) {
      this.recordGap(turn.call_id, `the turn can not be recorded: ${systemMessage(error)}`);
      return Promise.reject(error);
    }
    let appended: Appended;
    try {
      appended = this.append(input, payload);
    } catch (error) {
      return Promise.reject(this.fail(error, turn.call_id));
    }
    const durable = this.makeDurable(input, appended);
    // without their results: each would hold the one before it, back to the first turn
    this.settled = Promise.allSettled([this.settled, durable]).then(() => undefined);
    return durable;
  }

  private append(input: CommitInput, payload: Uint8Array): Appended {
    const { turn, open } = input;
    let segment: OpenSegment;
    if (open !== undefined) {
      const number = open.segment ?? this.nextSegment;
      segment = this.segments.create(number, open.parent, open.continues ?? null);
      this.lines.begin(number);
    } else segment = this.segments.get(input.segment!);
    const place: Place = segment.file.append(RecordType.turn, payload);
    this.lines.append(segment.segment, turn);
    const { seq, digest, bytes } = place;
    const commit: CommitRecord = {
      commit: this.nextCommit++,
      call_id: turn.call_id,
      file: segment.file.name,
      seq,
      digest,
      bytes,
    };
    this.journal.append("commit", commit);
    return { segment, commit, place: this.journal.place };
  }

  private async makeDurable(input: CommitInput, { segment, commit, place }: Appended): Promise<CommitRecord> {
    const before = this.settled;
    this.pending++;
    try {
      await Promise.all([segment.file.sync(), this.journal.sync(), segment.named]);
      const problem =
        segment.file.findIdentityProblem() ??
        this.journal.findIdentityProblem() ??
        this.dir.root.findIdentityProblem() ??
        this.dir.segments.findIdentityProblem();
      if (problem !== null) throw new TitoError("io", problem);
      await before;
      // turns at the same time may build on each other's lines, and sync in different files
      const lost = this.segments.findLost(segment.segment);
      if (lost !== null) throw new TitoError("io", `segment ${lost}, which it builds on, can not be made durable`);
    } catch (error) {
      throw this.fail(error, commit.call_id);
    } finally {
      this.pending--;
    }
    this.tally.turn(input.turn);
    await this.anchor(place);
    return commit;
  }

  private async anchor(place: JournalHead): Promise<void> {
    if (this.degraded === null) this.anchorable = place;
    else {
      // an earlier turn failed: an anchor that covers its commit must cover its gap
      if (this.pending > 0) return;
      const synced = await this.journal.sync().then(
        () => true,
        () => false,
      );
      if (!synced) return;
      this.anchorable = this.journal.durablePlace ?? this.anchorable;
    }
    this.options.onAnchor?.(this.head());
  }

  /** Degrades because a call could not be recorded; answers the error that its promise rejects with. */
  private fail(error: unknown, callId: string): TitoError {
    const reason = TitoError.is(error) ? error.message : `${errorCode(error) ?? "error"}: ${systemMessage(error)}`;
    this.degrade(reason, callId);
    return this.degradedError(error);
  }

  private degradedError(cause?: unknown): TitoError {
    return new TitoError("capture_degraded", `${this.path}: recording failed and stopped (${this.degraded})`, {
      cause,
      hint: "make room or replace the disk, and start a new trajectory; what was recorded before is kept",
    });
  }

  private degrade(reason: string, callId: string | null): void {
    // an earlier body may not be on disk: none may be built on it
    this.bodies = new BodyStore();
    if (this.degraded === null) {
      this.degraded = reason;
      this.ballast.drop();
      const detail = reason.slice(0, LIMITS.nameBytesMax);
      const record: LifecycleRecord = { event: "degraded", detail, at_ms: this.now() };
      this.note(() => this.journal.append("lifecycle", record));
    } else if (callId === null) return;
    this.recordGap(callId, reason);
  }

  private recordGap(callId: string | null, reason: string): void {
    const bounded = reason.slice(0, LIMITS.nameBytesMax);
    this.tally.gap(callId, bounded);
    this.note(() => this.journal.append("gap", { call_id: callId, reason: bounded, at_ms: this.now() }));
    if (!this.journal.broken) this.journal.sync().catch(() => this.degrade("the journal can not be synced", null));
  }

  private note(append: () => void): void {
    if (this.ended !== "abandoned") this.troubles.note(append);
  }

  /**
   * Ends the trajectory in order: waits for what is in flight, seals every open file and the journal, writes manifest.json and, when that is durable,
   * COMPLETE. Throws `capture_degraded` when even the manifest can not be written; the files are closed in any case.
   */
  async seal(input: SealInput): Promise<SealAnswer> {
    this.requireOpen();
    this.ended = "sealed";
    await this.settled;
    try {
      this.ballast.drop();
      if (this.options.durability === "write") await this.startSyncing();
      await this.sealSegments(input.reason);
      await this.sealJournal(input.reason);
      this.anchorable = this.journal.durablePlace ?? this.anchorable;
      const manifest = this.makeManifest(input);
      const manifest_sha256 = await writeManifest(this.dir.root, manifest);
      // whoever keeps the anchors outside can tell a sealed trajectory from one whose newest records were cut
      this.options.onAnchor?.(this.head());
      return { head: this.head(), manifest, manifest_sha256 };
    } catch (error) {
      this.degraded ??= `the seal can not be written: ${errorCode(error) ?? systemMessage(error)}`;
      throw this.degradedError(error);
    } finally {
      this.close();
    }
  }

  /** COMPLETE means that everything is durable, also where nothing was synced until now. */
  private async startSyncing(): Promise<void> {
    this.segments.startSyncing();
    this.journal.startSyncing();
    await makeDurable(this.dir).catch((error: unknown) => {
      this.unsynced = true;
      markUnsound(this.dir);
      this.degrade(`what was written can not be synced: ${errorCode(error) ?? systemMessage(error)}`, null);
    });
  }

  private async sealSegments(reason: string): Promise<void> {
    for (const segment of this.segments.openFiles) {
      let state: "sealed" | "open" = "sealed";
      try {
        this.segments.seal(segment, reason);
      } catch (error) {
        state = "open";
        if (segment.file.broken === null || this.degraded === null) {
          this.degrade(`${segment.file.name} can not be sealed: ${errorCode(error) ?? systemMessage(error)}`, null);
        }
      }
      if (!(await this.segments.finish(segment, state)) && this.degraded === null) {
        this.degrade(`${segment.file.name} can not be synced`, null);
      }
    }
    if (!(await this.segments.allClosed()) && this.degraded === null)
      this.degrade("a parked file can not be synced", null);
  }

  /** Two attempts: a journal that breaks now is followed by one that says so. */
  private async sealJournal(reason: string): Promise<void> {
    for (let attempt = 0; ; attempt++) {
      try {
        this.troubles.write();
        this.journal.append("lifecycle", { event: "sealed", detail: reason, at_ms: this.now() });
        const { head, records } = this.journal;
        this.journal.append("seal", { records, bytes: head.bytes, head: head.digest, reason, sealed_ms: this.now() });
        await this.journal.sync();
        return;
      } catch (error) {
        this.degrade(`the journal can not be sealed: ${errorCode(error) ?? systemMessage(error)}`, null);
        if (attempt === 1) throw error;
      }
    }
  }

  private makeManifest(input: SealInput): Manifest {
    const { options, journal, dir } = this;
    const own = [...journal.closed, ...this.segments.closed, journal.asClosed()];
    return describeTrajectory({
      options,
      input,
      verdict: this.tally.verdict(this.degraded),
      counts: this.tally.counts(this.lines.segments, journal.boot),
      files: listManifestFiles(dir, this.earlierFiles, own).map((file) =>
        this.unsynced ? { ...file, state: "open" as const } : file,
      ),
      head: this.head(),
      sealedMs: this.now(),
    });
  }

  /** Stops without a seal, as a crash would, but in order: descriptors are closed and the lock is given up. */
  abandon(): void {
    if (this.ended !== null) return;
    this.ended = "abandoned";
    for (const { file } of this.segments.openFiles) file.close();
    this.ballast.drop();
    this.close();
  }

  private close(): void {
    if (!this.troubles.allWritten) markUnsound(this.dir);
    this.journal.close();
    releaseBoot(this.dir, this.journal.boot);
    this.ballast.drop();
    this.dir.segments.close();
    this.dir.root.close();
  }

  private requireOpen(): void {
    if (this.ended !== null) throw this.endedError();
  }

  private endedError(): TitoError {
    return new TitoError("trajectory_sealed", `${this.path} is ${this.ended}; nothing more is recorded`);
  }
}
