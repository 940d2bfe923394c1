/** The fields of every record but the turn, in the order in which they are written. docs/format.md describes them. */
import {
  bytes,
  count,
  detail,
  digest,
  type Field,
  flag,
  longText,
  millis,
  name,
  nullable,
  oneOf,
  optional,
  record,
  textMap,
} from "./fields.js";
import type {
  BodyDelta,
  CommitRecord,
  DeliveryRecord,
  GapRecord,
  IntentRecord,
  JournalHeader,
  LifecycleRecord,
  ParkedRecord,
  RecordMap,
  RecordTypeName,
  ReplayRecord,
  SealRecord,
  SegmentHeader,
  UncapturedRecord,
} from "./records.js";
import { turnFields } from "./turn-fields.js";

const head = record<{ seq: number; digest: Uint8Array; bytes: number }>({ seq: count, digest, bytes: count });

const segmentHeader = record<SegmentHeader>({
  format_version: count,
  writer_version: name,
  trajectory_id: name,
  segment: count,
  boot_id: name,
  config_sha256: digest,
  created_ms: millis,
  previous_head: nullable(head),
  parent: nullable(record({ segment: count, tokens: count })),
  continues: nullable(record({ segment: count, why: oneOf(["parked", "recovered"]) })),
});

const seal = record<SealRecord>({ records: count, bytes: count, head: digest, reason: name, sealed_ms: millis });
const parked = record<ParkedRecord>({ records: count, bytes: count, parked_ms: millis });

const journalHeader = record<JournalHeader>({
  format_version: count,
  writer_version: name,
  trajectory_id: name,
  boot: count,
  boot_id: name,
  run_id: nullable(name),
  group_id: nullable(name),
  trial_id: nullable(name),
  attempt: count,
  metadata: textMap,
  config_json: longText,
  config_sha256: digest,
  previous_head: nullable(head),
  created_ms: millis,
  durability: optional(oneOf(["fsync", "write"])),
} as { [K in keyof JournalHeader]-?: Field<JournalHeader[K]> });

const body = record<BodyDelta>({
  base_call_id: nullable(name),
  prefix: count,
  suffix: count,
  deflate: bytes(),
  bytes: count,
  sha256: digest,
});

const intent = record<IntentRecord>({
  call_id: name,
  dialect: oneOf(["chat", "completions", "responses", "messages"]),
  path: detail,
  headers: textMap,
  body,
  received_ms: millis,
});

const commit = record<CommitRecord>({ commit: count, call_id: name, file: name, seq: count, digest, bytes: count });

const delivery = record<DeliveryRecord>({
  call_id: name,
  outcome: oneOf(["delivered", "failed"]),
  bytes: count,
  status: count,
  detail: nullable(detail),
  at_ms: millis,
});

const replay = record<ReplayRecord>({ call_id: name, replay_call_id: name, matched_by: name, at_ms: millis });

const uncaptured = record<UncapturedRecord>({
  call_id: name,
  reason: name,
  status: nullable(count),
  detail,
  lost_tokens: flag,
  at_ms: millis,
});

const lifecycle = record<LifecycleRecord>({
  event: oneOf(["start", "recovered", "sealing", "sealed", "degraded", "crash", "config", "shutdown"]),
  detail,
  at_ms: millis,
});

const gap = record<GapRecord>({ call_id: nullable(name), reason: detail, at_ms: millis });

/** Record type name → its fields. */
export const RECORD_FIELDS: { [K in RecordTypeName]: Field<RecordMap[K]> } = {
  segment_header: segmentHeader,
  turn: turnFields,
  seal,
  parked,
  journal_header: journalHeader,
  intent,
  commit,
  delivery,
  replay,
  uncaptured,
  lifecycle,
  gap,
};
