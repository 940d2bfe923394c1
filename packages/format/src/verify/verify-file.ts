/**
 * One file of a trajectory under verification: what holds for every frame file, whatever it records. Frames, chain, seal, keyed digests, and the heads
 * that others say this file had.
 */
import path from "node:path";
import type { MacRecord, MacVerifier } from "../frame/mac.js";
import { decodeMac, MAC_TYPE } from "../frame/mac.js";
import { type RecordItem, readRecords } from "../read/read-trajectory.js";
import type { GapReason } from "../read/scan.js";
import type { LogGap, RecordPlace } from "../read/trajectory-log.js";
import { TitoError } from "../record/errors.js";
import type { NamedRecord } from "../record/record-codec.js";
import type { Findings, Severity } from "./verify-types.js";

/** A head that somebody outside the file says it had. */
export interface ExpectedHead {
  seq: number;
  digest: Uint8Array;
  bytes: number;
  /** `anchor`: from outside. `own`: from a segment of the same boot. `earlier`: from the journal of a later boot. */
  kind: "anchor" | "own" | "earlier";
  /** Files that may have had it; none when they are gone. */
  files: readonly string[];
  /** Who says so, for the message. */
  witness: string;
  met: boolean;
  /** Another record is in its place. */
  replaced: boolean;
}

/** What was seen of a file once it was walked. */
export interface FileEnd {
  file: string;
  bytes: number;
  records: number;
  head: { seq: number; digest: Uint8Array; bytes: number } | null;
  sealed: boolean;
  parked: boolean;
  /** True when anything in it could not be read, or when its end is gone and was never made durable. */
  damaged: boolean;
  /** True when it ends inside a frame, or between a record and its keyed digest. */
  torn: boolean;
}

const SEVERITY: Record<Exclude<GapReason, "torn_tail"> | "unreadable", Severity> = {
  bad_header: "damaged",
  bad_payload: "damaged",
  unreadable: "damaged",
  bad_chain: "tampered",
  bad_sequence: "tampered",
};

export interface FileCheck {
  dir: string;
  file: string;
  findings: Findings;
  /** What a torn tail means: a killed writer, of no importance once a later boot was sealed. */
  tornSeverity: Severity;
  mac: MacVerifier | null;
  /** Boot → how many keyed digests were seen, and the highest number. */
  macs: Map<number, { seen: number; last: number }>;
  /** Sequence number → heads that this file is said to have had there. */
  expected: Map<number, ExpectedHead[]>;
  onRecord: (named: NamedRecord, place: RecordPlace) => void;
}

/** A file of which nothing was seen yet. */
export function emptyEnd(file: string, bytes: number): FileEnd {
  return { file, bytes, records: 0, head: null, sealed: false, parked: false, damaged: false, torn: false };
}

/** Walks a file to its end, and hands on what it reads; `bytes` is its size. */
export function* walkFile(check: FileCheck, bytes: number): Generator<RecordItem, FileEnd, void> {
  const end = emptyEnd(check.file, bytes);
  /** The record that still waits for its keyed digest; `unknown` where it may be in what can not be read. */
  let unsigned: RecordPlace | "unknown" | null = "unknown";
  for (const item of readRecords(path.join(check.dir, check.file), check.file, { mode: "salvage" })) {
    if (item.kind === "gap") {
      addGap(check, end, item.gap);
      endUnsigned(check, end, unsigned);
      unsigned = "unknown";
      yield item;
      continue;
    }
    const { place } = item;
    if (check.mac !== null) unsigned = followMac(check, unsigned, item);
    checkEnded(check, end, item.kind === "optional" && item.type === MAC_TYPE, place);
    for (const head of check.expected.get(place.seq) ?? []) {
      if (place.bytes === head.bytes && Buffer.compare(place.digest, head.digest) === 0) head.met = true;
      else head.replaced = head.files.length === 1;
    }
    if (item.kind === "record") checkClosing(check, end, item.named, place);
    end.records++;
    end.head = { seq: place.seq, digest: place.digest, bytes: place.bytes };
    if (item.kind === "record") check.onRecord(item.named, place);
    yield item;
  }
  endUnsigned(check, end, unsigned);
  return end;
}

/** A record and its keyed digest are one write: only where that was cut short can one be there without the other, or somebody else wrote it. */
function endUnsigned({ mac, findings }: FileCheck, end: FileEnd, unsigned: RecordPlace | "unknown" | null): void {
  if (mac === null || unsigned === null || unsigned === "unknown") return;
  end.torn = true;
  const message = "nothing follows this record, not its keyed digest either: it may be forged";
  findings.add("damaged", "mac_missing", unsigned, message);
}

function addGap(check: FileCheck, end: FileEnd, gap: LogGap): void {
  const reason = gap.reason as GapReason | "unreadable";
  if (reason === "torn_tail") end.torn = true;
  else end.damaged = true;
  check.findings.add(reason === "torn_tail" ? check.tornSeverity : SEVERITY[reason], reason, gap, gap.detail);
}

/** A keyed digest may follow the seal that it signs; nothing else may. */
function checkEnded(check: FileCheck, end: FileEnd, isMac: boolean, place: RecordPlace): void {
  if ((end.sealed || end.parked) && !(isMac && place.seq === end.head!.seq + 1)) {
    check.findings.add("tampered", "record_after_seal", place, "a record follows the one that closed this file");
  }
}

/** A closing record says how much came before it, and a seal its digest: the last that is not a keyed digest made for itself. */
function checkClosing(check: FileCheck, end: FileEnd, named: NamedRecord, place: RecordPlace): void {
  if (named.name !== "seal" && named.name !== "parked") return;
  if (named.name === "seal") end.sealed = true;
  else end.parked = true;
  const { records, bytes } = named.record;
  if (records !== place.seq || bytes !== place.offset) {
    check.findings.add(
      "tampered",
      "seal_mismatch",
      place,
      `the closing record counts ${records} records in ${bytes} bytes`,
    );
  }
  if (named.name !== "seal" || end.head === null || end.head.seq !== place.seq - 1) return;
  if (Buffer.compare(named.record.head, end.head.digest) !== 0)
    check.findings.add("tampered", "seal_mismatch", place, "the seal names another record as the last before it");
}

/** Checks that each record is followed by its keyed digest; answers the record that waits for one. */
function followMac(
  check: FileCheck,
  unsigned: RecordPlace | "unknown" | null,
  item: { kind: "record" | "optional"; place: RecordPlace; type?: number; payload?: Buffer },
): RecordPlace | null {
  const { findings, mac, macs } = check;
  if (item.kind === "record" || item.type !== MAC_TYPE) {
    if (unsigned !== null && unsigned !== "unknown")
      findings.add("tampered", "mac_missing", unsigned, "this record has no keyed digest");
    return item.place;
  }
  let record: MacRecord;
  try {
    record = decodeMac(item.payload!, `${item.place.file} offset ${item.place.offset}`);
  } catch (error) {
    if (!TitoError.is(error)) throw error;
    findings.add("tampered", "mac_mismatch", item.place, `not a keyed digest: ${error.message}`);
    return null;
  }
  const seen = macs.get(record.boot) ?? { seen: 0, last: -1 };
  macs.set(record.boot, { seen: seen.seen + 1, last: Math.max(seen.last, record.index) });
  if (unsigned === "unknown") return null;
  if (unsigned === null)
    findings.add("tampered", "mac_mismatch", item.place, "a keyed digest without the record that it was made for");
  else if (!mac!.verify(record, unsigned.digest)) {
    findings.add("tampered", "mac_mismatch", unsigned, "the keyed digest was not made with this key for this record");
  }
  return null;
}
