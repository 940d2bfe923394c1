/** What goes into and comes out of a trajectory writer. */
import type { Disk } from "../disk/disk.js";
import type { Lines } from "../read/lines.js";
import type { TrajectoryLog } from "../read/trajectory-log.js";
import type { AnchoredHead } from "../record/anchors.js";
import type { Manifest } from "../record/manifest.js";
import type { IntentRecord, SegmentHeader, SharedPrefix, TurnRecord } from "../record/records.js";
import type { Durability } from "./frame-file.js";

export interface TrajectoryWriterOptions {
  /** Directory that holds trajectories; created when missing. */
  out: string;
  trajectoryId: string;
  runId?: string | null;
  groupId?: string | null;
  trialId?: string | null;
  attempt?: number;
  metadata?: Record<string, string>;
  /** Redacted configuration as canonical JSON text. */
  configJson: string;
  writerVersion: string;
  /** `fsync` (default): durable against power loss before release. `write`: against the death of the process only. */
  durability?: Durability;
  disk?: Disk;
  /** Milliseconds since the epoch. */
  now?: () => number;
  /** Key for the keyed digests, at least 16 bytes; erased by the writer. */
  hmacKey?: Uint8Array;
  /** Called with the durable head after each turn and after the seal, in order. */
  onAnchor?: (head: AnchoredHead) => void;
}

/** An intent with the request body as it came; the writer makes the delta. */
export type IntentInput = Omit<IntentRecord, "body"> & { body: Uint8Array };

/** Types that go to the journal as they are. */
export type JournalRecordName = "delivery" | "replay" | "uncaptured" | "lifecycle" | "gap";

/** Where a turn goes: exactly one of `open` and `segment`. */
export interface CommitInput {
  /** Opens a segment; its number is `segment` when given (above all earlier ones), else the next. */
  open?: { segment?: number; parent: SharedPrefix | null; continues?: SegmentHeader["continues"] };
  /** The segment that the turn is appended to; also one of an earlier boot or a parked one. */
  segment?: number;
  turn: TurnRecord;
}

export type WriterState = { kind: "ok" } | { kind: "degraded"; reason: string };

/** What an earlier boot left. */
export interface Recovered {
  /** Every record. */
  log: TrajectoryLog;
  /** What may be built on: the log without the turns that were refused because they could not be made durable. */
  released: TrajectoryLog;
  /** The token lines of `released`. */
  lines: Lines;
}

export interface SealInput {
  reason: string;
  /** Opening reason or drift cause → how often. */
  drift?: Record<string, number>;
}

export interface SealAnswer {
  head: AnchoredHead;
  manifest: Manifest;
  /** SHA-256 of manifest.json, hex. */
  manifest_sha256: string;
}
