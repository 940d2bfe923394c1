/** The journal of this boot, and its successor when it can not be written any more: a file that failed is left as it is. */

import { journalName, type TrajectoryDir, takeNextBoot } from "../disk/trajectory-dir.js";
import { MacKey } from "../frame/mac.js";
import { TitoError } from "../record/errors.js";
import { encodeRecord } from "../record/record-codec.js";
import {
  FORMAT_VERSION,
  type JournalHeader,
  type RecordMap,
  RecordType,
  type RecordTypeName,
} from "../record/records.js";
import { type Durability, FrameFile, type Head, type Place } from "./frame-file.js";
import type { ClosedFile } from "./segment-pool.js";
import type { TrajectoryWriterOptions } from "./writer-types.js";

export interface JournalOptions {
  dir: TrajectoryDir;
  boot: number;
  bootId: string;
  configSha256: Uint8Array;
  now: () => number;
  writer: TrajectoryWriterOptions;
  /** Head of the boot before; null for the first. */
  previous: Head | null;
}

/** A head, and the boot whose journal has it. */
export interface JournalHead {
  boot: number;
  head: Head;
}

/** Journals that one process starts because the one before broke; after that the disk is not worth more. */
const SUCCESSORS_MAX = 4;

export class Journal {
  readonly mac: MacKey | null;
  /** Journals of this process that broke. */
  readonly closed: ClosedFile[] = [];
  /** Number that this process holds; ahead of the file's when a successor could not be begun. */
  boot: number;
  private readonly options: JournalOptions;
  private file: FrameFile;
  private fileBoot: number;
  private named: Promise<void>;
  private successors = 0;
  private durability: Durability;
  /** The last head of an earlier journal of this process that a power cut leaves. */
  private durableBefore: JournalHead | null = null;

  /** Creates the file and writes its header. Throws the system error. */
  constructor(options: JournalOptions) {
    this.options = options;
    this.boot = options.boot;
    this.fileBoot = options.boot;
    this.durability = options.writer.durability ?? "fsync";
    const { hmacKey, trajectoryId } = options.writer;
    this.mac = hmacKey === undefined ? null : new MacKey(hmacKey, trajectoryId, options.boot);
    ({ file: this.file, named: this.named } = this.start(options.previous));
  }

  private start(previous: Head | null): { file: FrameFile; named: Promise<void> } {
    const { dir, bootId, configSha256, now, writer } = this.options;
    const header: JournalHeader = {
      format_version: FORMAT_VERSION,
      writer_version: writer.writerVersion,
      trajectory_id: writer.trajectoryId,
      boot: this.boot,
      boot_id: bootId,
      run_id: writer.runId ?? null,
      group_id: writer.groupId ?? null,
      trial_id: writer.trialId ?? null,
      attempt: writer.attempt ?? 1,
      metadata: writer.metadata ?? {},
      config_json: writer.configJson,
      config_sha256: configSha256,
      previous_head: previous === null || previous.seq < 0 ? null : headOf(previous),
      created_ms: now(),
      durability: writer.durability ?? "fsync",
    };
    const payload = encodeRecord("journal_header", header);
    const name = journalName(this.boot);
    const { durability, mac } = this;
    const file = new FrameFile({ disk: dir.root.disk, path: dir.root.at(name), name, durability, mac });
    // in either durability: a boot number that was given once, and may be anchored, is never given again
    const named = dir.root.sync();
    // waited for by the next sync; until then a failure is not unhandled
    named.catch(() => undefined);
    try {
      file.append(RecordType.journal_header, payload);
    } catch (error) {
      file.close();
      throw error;
    }
    return { file, named };
  }

  /** Leaves a broken file behind and goes on in the next one. Throws the system error, or `io` when that was tried too often. */
  startNext(): void {
    const { file } = this;
    if (++this.successors > SUCCESSORS_MAX)
      throw new TitoError("io", `${file.name}: the journal failed again and again`);
    if (this.closed.at(-1)?.path !== file.name) this.closed.push({ ...this.asClosed(), state: "open" });
    if (file.durableHead.seq >= 0) this.durableBefore = { boot: this.fileBoot, head: file.durableHead };
    file.close();
    this.boot = takeNextBoot(this.options.dir, this.boot);
    ({ file: this.file, named: this.named } = this.start(file.durableHead));
    this.fileBoot = this.boot;
  }

  /** Ends `write` durability for this journal and those that may follow. */
  startSyncing(): void {
    this.durability = "fsync";
    this.file.startSyncing();
  }

  /** The file as it stands in a manifest. */
  asClosed(): ClosedFile {
    const { name, head, records, broken } = this.file;
    return { path: name, head, records, state: broken === null ? "sealed" : "open" };
  }

  get broken(): boolean {
    return this.file.broken !== null;
  }

  get head(): Head {
    return this.file.head;
  }

  get durableHead(): Head {
    return this.file.durableHead;
  }

  /** The head, with the boot whose journal has it. */
  get place(): JournalHead {
    return { boot: this.fileBoot, head: this.file.head };
  }

  /** The last durable head of this process, also of a journal before this one. Null before there is one. */
  get durablePlace(): JournalHead | null {
    const { durableHead: head } = this.file;
    return head.seq >= 0 ? { boot: this.fileBoot, head } : this.durableBefore;
  }

  get records(): number {
    return this.file.records;
  }

  append<K extends RecordTypeName>(name: K, record: RecordMap[K]): Place {
    return this.appendPayload(name, encodeRecord(name, record));
  }

  appendPayload(name: RecordTypeName, payload: Uint8Array): Place {
    return this.file.append(RecordType[name], payload);
  }

  async sync(): Promise<void> {
    const { file } = this;
    try {
      await Promise.all([file.sync(), this.named]);
    } catch (error) {
      file.broken ??= "its name can not be made durable";
      throw error;
    }
  }

  findIdentityProblem(): string | null {
    return this.file.findIdentityProblem();
  }

  close(): void {
    this.mac?.erase();
    this.file.close();
  }
}

function headOf({ seq, digest, bytes }: Head): Head {
  return { seq, digest, bytes };
}
