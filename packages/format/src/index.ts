/**
 * @tito/format owns the bytes of a segment file: record types, frames, checksums, the digest chain, limits, reader and writer.
 * It never decides where a turn belongs and never speaks HTTP.
 */
export { formatAnchor, parseAnchor, parseAnchors } from "./anchors.js";
export { BodyStore, rebuildBodyFrom } from "./body-delta.js";
export { crc32c } from "./crc32c.js";
export { sha256 } from "./digest.js";
export { type Disk, type FileStatus, nodeDisk } from "./disk.js";
export { ERROR_CODES, type ErrorCode, TitoError, type TitoErrorOptions } from "./errors.js";
export { chainDigest, encodeFrame, FRAME_HEADER_BYTES, FRAME_MAGIC } from "./frame.js";
export type { Durability, Head } from "./frame-file.js";
export { LIMITS } from "./limits.js";
export { type LineStatus, Lines, promptDigest, rebuildLines } from "./lines.js";
export { HMAC_KEY_BYTES_MIN } from "./mac.js";
export {
  MANIFEST_SCHEMA,
  type Manifest,
  type ManifestCounts,
  type ManifestFile,
  type ManifestStatus,
  parseManifest,
} from "./manifest.js";
export type { ContentPart, Message, Role, ToolCall, ToolDefinition } from "./messages.js";
export {
  float32FromBytes,
  float64FromBytes,
  int32FromBytes,
  littleEndianBytes,
  toLogprobs,
  toTokenIds,
} from "./numbers.js";
export {
  findTrajectories,
  type ReadOptions,
  type RecordItem,
  readManifest,
  readRecords,
  readSegment,
  readTrajectory,
  rebuildBody,
} from "./read-trajectory.js";
export { decodeRecord, encodeRecord, type NamedRecord } from "./record-codec.js";
export * from "./records.js";
export {
  type FrameItem,
  type GapItem,
  type GapReason,
  type ReadMode,
  type ScanItem,
  type ScanOptions,
  scanFile,
} from "./scan.js";
export { fromSystem } from "./system-error.js";
export { isTrajectoryId } from "./trajectory-dir.js";
export {
  danglingCalls,
  type JournalFile,
  type LogGap,
  type LoggedTurn,
  type RecordPlace,
  type SegmentFile,
  type SegmentLog,
  type TrajectoryLog,
  turnsInCommitOrder,
} from "./trajectory-log.js";
export { type VerifyOptions, verifyTrajectory } from "./verify.js";
export { missingTrajectory } from "./verify-missing.js";
export type { Finding, FindingCode, Severity, TrajectoryVerdict, VerifyCounts, VerifyStatus } from "./verify-types.js";
export { createTrajectoryWriter, type TrajectoryWriter } from "./writer.js";
export type {
  AnchoredHead,
  CommitInput,
  IntentInput,
  JournalRecordName,
  Recovered,
  SealAnswer,
  SealInput,
  TrajectoryWriterOptions,
  WriterState,
} from "./writer-types.js";
