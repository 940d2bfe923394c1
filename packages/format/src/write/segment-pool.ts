/**
 * The open segment files of a trajectory: at most 64. When one more is needed, the one that was idle longest gets a `parked` record and is closed;
 * its segment goes on in a next part. A part says in its header which segment it continues and why.
 */

import { segmentName, type TrajectoryDir } from "../disk/trajectory-dir.js";
import type { MacKey } from "../frame/mac.js";
import { TitoError } from "../record/errors.js";
import { LIMITS } from "../record/limits.js";
import { encodeRecord } from "../record/record-codec.js";
import { FORMAT_VERSION, RecordType, type SegmentHeader, type SharedPrefix } from "../record/records.js";
import { type Durability, FrameFile, type Head } from "./frame-file.js";

/** What a segment header says besides the segment's own fields; the same for all files of a boot. */
export interface PoolOptions {
  dir: TrajectoryDir;
  durability: Durability;
  mac: MacKey | null;
  now: () => number;
  writerVersion: string;
  trajectoryId: string;
  bootId: string;
  configSha256: Uint8Array;
  /** Durable head of the journal at this moment. */
  journalHead: () => Head;
}

export interface OpenSegment {
  segment: number;
  file: FrameFile;
  /** Resolves when the file's name is durable, and so is the file that was parked to make room for it. */
  named: Promise<void>;
  /** Rises with each use. */
  usedAt: number;
}

/** A file that gets no more records; its end goes into the manifest. */
export interface ClosedFile {
  path: string;
  head: Head;
  records: number;
  state: "sealed" | "parked" | "open";
}

export class SegmentPool {
  readonly closed: ClosedFile[] = [];
  private readonly open = new Map<number, OpenSegment>();
  private readonly parts: Map<number, number>;
  private readonly written = new Set<number>();
  /** Segment of this boot → the one that its line begins with. */
  private readonly parents = new Map<number, number>();
  /** Segments with a closed file whose end could not be made durable. */
  private readonly lost = new Set<number>();
  private readonly closing = new Set<Promise<boolean>>();
  private uses = 0;

  /** `parts`: the highest part of each segment of earlier boots. */
  constructor(
    private options: PoolOptions,
    parts: ReadonlyMap<number, number>,
  ) {
    this.parts = new Map(parts);
  }

  get openCount(): number {
    return this.open.size;
  }

  get openFiles(): OpenSegment[] {
    return [...this.open.values()];
  }

  /** True when the segment exists, in this boot or an earlier one. */
  has(segment: number): boolean {
    return this.parts.has(segment);
  }

  /** Creates the first file of a segment. Throws the system error. */
  create(segment: number, parent: SharedPrefix | null, continues: SegmentHeader["continues"]): OpenSegment {
    return this.start(segment, 1, parent, continues);
  }

  /** The file that a segment's next turn goes to; a new part when the last one was parked or belongs to an earlier boot. */
  get(segment: number): OpenSegment {
    const open = this.open.get(segment);
    if (open !== undefined) {
      open.usedAt = ++this.uses;
      return open;
    }
    const why = this.written.has(segment) ? "parked" : "recovered";
    return this.start(segment, (this.parts.get(segment) ?? 0) + 1, null, { segment, why });
  }

  private start(
    segment: number,
    part: number,
    parent: SharedPrefix | null,
    continues: SegmentHeader["continues"],
  ): OpenSegment {
    const room = this.open.size >= LIMITS.openSegmentsMax ? this.parkIdlest() : Promise.resolve(true);
    const { dir, durability, mac, now, writerVersion, trajectoryId, bootId, configSha256, journalHead } = this.options;
    const name = segmentName(segment, part);
    const head = journalHead();
    const header: SegmentHeader = {
      format_version: FORMAT_VERSION,
      writer_version: writerVersion,
      trajectory_id: trajectoryId,
      segment,
      boot_id: bootId,
      config_sha256: configSha256,
      created_ms: now(),
      previous_head: head.seq < 0 ? null : head,
      parent,
      continues,
    };
    const payload = encodeRecord("segment_header", header);
    const path = dir.segments.at(name.slice(name.indexOf("/") + 1));
    const file = new FrameFile({ disk: dir.segments.disk, path, name, durability, mac });
    const named = this.makeNameDurable(file, room);
    // waited for by the commit that uses the file; until then a failure is not unhandled
    named.catch(() => undefined);
    const opened: OpenSegment = { segment, file, named, usedAt: ++this.uses };
    this.open.set(segment, opened);
    this.parts.set(segment, part);
    this.written.add(segment);
    if (parent !== null) this.parents.set(segment, parent.segment);
    try {
      file.append(RecordType.segment_header, payload);
    } catch (error) {
      file.broken ??= "it has no header";
      throw error;
    }
    return opened;
  }

  private async makeNameDurable(file: FrameFile, room: Promise<boolean>): Promise<void> {
    try {
      if (this.options.durability === "fsync") await this.options.dir.segments.sync();
      if (!(await room)) throw new TitoError("io", "the file that was parked for it can not be made durable");
    } catch (error) {
      file.broken ??= "it can not be made durable";
      throw error;
    }
  }

  /** Resolves when the parked file is durable: true; false when that can not be had. Throws the system error of its last record. */
  private parkIdlest(): Promise<boolean> {
    const idle = this.openFiles.sort((a, b) => a.usedAt - b.usedAt);
    const victim = idle.find((item) => item.file.isIdle) ?? idle[0]!;
    const { records, head } = victim.file;
    const parked = encodeRecord("parked", { records, bytes: head.bytes, parked_ms: this.options.now() });
    try {
      victim.file.append(RecordType.parked, parked);
    } catch (error) {
      void this.finish(victim, "open");
      throw error;
    }
    return this.finish(victim, "parked");
  }

  /**
   * The segment, or one that its line goes on from, of which something that was appended will never be durable; null when there is none.
   * What builds on it would lose its beginning with the power.
   */
  findLost(segment: number): number | null {
    for (let at: number | undefined = segment; at !== undefined; at = this.parents.get(at)) {
      if (this.lost.has(at) || this.open.get(at)?.file.isLost === true) return at;
    }
    return null;
  }

  /** Resolves when every file that was closed is durable: true; false when one can not be. */
  async allClosed(): Promise<boolean> {
    return (await Promise.all(this.closing)).every((durable) => durable);
  }

  /** Ends `write` durability for the open files and those that may follow. */
  startSyncing(): void {
    this.options = { ...this.options, durability: "fsync" };
    for (const { file } of this.open.values()) file.startSyncing();
  }

  /** Appends the seal record to an open file. Throws the system error; the file then counts as left open. */
  seal(segment: OpenSegment, reason: string): void {
    const { records, head } = segment.file;
    const sealed_ms = this.options.now();
    const payload = encodeRecord("seal", { records, bytes: head.bytes, head: head.digest, reason, sealed_ms });
    segment.file.append(RecordType.seal, payload);
  }

  /** Takes a file out of use and closes it once what was appended is durable; false when that can not be had. */
  finish(segment: OpenSegment, state: ClosedFile["state"]): Promise<boolean> {
    const { file } = segment;
    this.open.delete(segment.segment);
    const closed: ClosedFile = { path: file.name, head: file.head, records: file.records, state };
    this.closed.push(closed);
    const durable = file.sync().then(
      () => true,
      () => {
        closed.state = "open";
        if (file.isLost) this.lost.add(segment.segment);
        return false;
      },
    );
    const finished = durable.finally(() => {
      file.close();
      this.closing.delete(finished);
    });
    this.closing.add(finished);
    return finished;
  }
}
