/**
 * @tito/format owns the bytes of a segment file: record types, frames, checksums, the digest chain, limits, reader and writer.
 * It never decides where a turn belongs and never speaks HTTP.
 */

export { type Disk, type FileStatus, nodeDisk } from "./disk/disk.js";
export { fromSystem } from "./disk/system-error.js";
export { isTrajectoryId } from "./disk/trajectory-dir.js";
export { crc32c } from "./frame/crc32c.js";
export { chainDigest, encodeFrame, FRAME_HEADER_BYTES, FRAME_MAGIC } from "./frame/frame.js";
export { HMAC_KEY_BYTES_MIN } from "./frame/mac.js";
export { type LineStatus, Lines, promptDigest, rebuildLines } from "./read/lines.js";
export {
  findTrajectories,
  type ReadOptions,
  type RecordItem,
  readManifest,
  readRecords,
  readSegment,
  readTrajectory,
  rebuildBody,
} from "./read/read-trajectory.js";
export {
  type FrameItem,
  type GapItem,
  type GapReason,
  type ReadMode,
  type ScanItem,
  type ScanOptions,
  scanFile,
} from "./read/scan.js";
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
} from "./read/trajectory-log.js";
export { type AnchoredHead, formatAnchor, parseAnchor, parseAnchors } from "./record/anchors.js";
export { BodyStore, rebuildBodyFrom } from "./record/body-delta.js";
export { type CaptureLoss, LossCount, lossesIn, lossInWords } from "./record/capture-loss.js";
export { sha256 } from "./record/digest.js";
export { ERROR_CODES, type ErrorCode, TitoError, type TitoErrorOptions } from "./record/errors.js";
export { LIMITS } from "./record/limits.js";
export {
  MANIFEST_SCHEMA,
  type Manifest,
  type ManifestCounts,
  type ManifestFile,
  type ManifestStatus,
  parseManifest,
} from "./record/manifest.js";
export type { ContentPart, Message, Role, ToolCall, ToolDefinition } from "./record/messages.js";
export {
  float32FromBytes,
  float64FromBytes,
  int32FromBytes,
  littleEndianBytes,
  toLogprobs,
  toTokenIds,
} from "./record/numbers.js";
export { decodeRecord, encodeRecord, type NamedRecord } from "./record/record-codec.js";
export * from "./record/records.js";
export { isMadeRunId, makeRunId } from "./record/run-id.js";
export { readVerified, verifyTrajectory } from "./verify/verify.js";
export { missingTrajectory } from "./verify/verify-missing.js";
export type {
  Finding,
  FindingCode,
  Severity,
  TrajectoryVerdict,
  VerifyCounts,
  VerifyStatus,
} from "./verify/verify-types.js";
export type { Durability, Head } from "./write/frame-file.js";
export { createTrajectoryWriter, type TrajectoryWriter } from "./write/writer.js";
export type {
  CommitInput,
  IntentInput,
  JournalRecordName,
  Recovered,
  SealAnswer,
  SealInput,
  TrajectoryWriterOptions,
  WriterState,
} from "./write/writer-types.js";
