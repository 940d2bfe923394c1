/** What `verifyTrajectory` answers, and the list that its steps write their findings into. */
import type { RecordPlace } from "../read/trajectory-log.js";
import type { AnchoredHead } from "../record/anchors.js";
import type { CaptureLoss } from "../record/capture-loss.js";

/** Worse is later. `note` changes no status. */
export type Severity = "note" | "incomplete" | "damaged" | "tampered";

/**
 * The closed list; docs/format.md#verify explains each.
 * Damage is what a disk does: a checksum does not hold. Tampering is what only a hand does: every checksum holds and two witnesses disagree.
 */
export type FindingCode =
  | "torn_tail"
  | "bad_header"
  | "bad_payload"
  | "bad_chain"
  | "bad_sequence"
  | "unreadable"
  | "no_header"
  | "wrong_place"
  | "recorded_gap"
  | "lost_call"
  | "lost_ids"
  | "dangling_call"
  | "not_sealed"
  | "seal_mismatch"
  | "prompt_mismatch"
  | "record_mismatch"
  | "body_mismatch"
  | "record_after_seal"
  | "head_missing"
  | "records_after_successor"
  | "turn_missing"
  | "turn_replaced"
  | "turn_without_commit"
  | "file_missing"
  | "manifest_unreadable"
  | "manifest_mismatch"
  | "manifest_incomplete"
  | "file_unlisted"
  | "anchor_missing"
  | "not_anchored"
  | "trajectory_missing"
  | "mac_missing"
  | "mac_mismatch";

export interface Finding {
  code: FindingCode;
  severity: Severity;
  file: string;
  offset: number;
  seq: number;
  message: string;
}

/** The worst finding; `missing` when no file with records is left. */
export type VerifyStatus = "complete" | "incomplete" | "missing" | "damaged" | "tampered";

export interface VerifyCounts {
  files: number;
  bytes: number;
  records: number;
  turns: number;
  sampled_tokens: number;
  calls: number;
  gaps: number;
}

export interface TrajectoryVerdict {
  dir: string;
  trajectory_id: string;
  status: VerifyStatus;
  findings: Finding[];
  /** Findings beyond the bound, not listed. */
  findings_left_off: number;
  counts: VerifyCounts;
  /** Calls without ids and turns whose evidence is not whole, with counts; null when there are none. */
  capture_loss: CaptureLoss | null;
  /** Head of the last journal; null when none can be read. */
  head: AnchoredHead | null;
}

export interface VerifyOptions {
  /** Heads that were kept outside; those of other trajectories are ignored. A trajectory that none of them names is not confirmed: incomplete. */
  anchors?: readonly AnchoredHead[];
  hmacKey?: Uint8Array;
  onProgress?: (progress: { file: string; bytes: number; bytesTotal: number }) => void;
}

const FINDINGS_MAX = 1000;
const RANK: Record<Severity, number> = { note: 0, incomplete: 1, damaged: 2, tampered: 3 };
const STATUS: readonly VerifyStatus[] = ["complete", "incomplete", "damaged", "tampered"];

export class Findings {
  readonly list: Finding[] = [];
  leftOff = 0;
  private worst = 0;

  add(
    severity: Severity,
    code: FindingCode,
    place: Pick<RecordPlace, "file" | "offset" | "seq">,
    message: string,
  ): void {
    this.worst = Math.max(this.worst, RANK[severity]);
    const { file, offset, seq } = place;
    if (this.list.length < FINDINGS_MAX) this.list.push({ code, severity, file, offset, seq, message });
    else this.leftOff++;
  }

  /** A finding about a whole file. */
  addFile(severity: Severity, code: FindingCode, file: string, message: string): void {
    this.add(severity, code, { file, offset: 0, seq: 0 }, message);
  }

  get status(): VerifyStatus {
    return STATUS[this.worst]!;
  }
}
