/** Puts manifest.json, then COMPLETE, into a trajectory's directory, each durable before the next step. */
import { createHash } from "node:crypto";
import fs from "node:fs";
import { closeQuietly, writeFully } from "../disk/disk.js";
import {
  bootOfJournal,
  COMPLETE_FILE,
  type HeldDir,
  MANIFEST_FILE,
  removeQuietly,
  SEGMENTS_DIR,
  segmentOfName,
  type TrajectoryDir,
} from "../disk/trajectory-dir.js";
import type { TrajectoryLog } from "../read/trajectory-log.js";
import type { AnchoredHead } from "../record/anchors.js";
import {
  COMPLETE_SCHEMA,
  MANIFEST_SCHEMA,
  type Manifest,
  type ManifestCounts,
  type ManifestFile,
} from "../record/manifest.js";
import { FORMAT_VERSION } from "../record/records.js";
import type { ClosedFile } from "./segment-pool.js";
import type { SealInput, TrajectoryWriterOptions } from "./writer-types.js";

/** Writes both files; answers the manifest's SHA-256 in hex. Throws the system error; neither file is ever there in part. */
export async function writeManifest(dir: HeldDir, manifest: Manifest): Promise<string> {
  const bytes = Buffer.from(`${JSON.stringify(manifest)}\n`);
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  await putFile(dir, MANIFEST_FILE, bytes);
  await putFile(
    dir,
    COMPLETE_FILE,
    Buffer.from(`${JSON.stringify({ schema: COMPLETE_SCHEMA, manifest_sha256: sha256 })}\n`),
  );
  return sha256;
}

/** Writes under another name, syncs, renames, makes the name durable. */
async function putFile(dir: HeldDir, name: string, bytes: Uint8Array): Promise<void> {
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = fs.constants;
  const temporary = `${name}.tmp`;
  removeQuietly(dir, temporary);
  const fd = dir.disk.open(dir.at(temporary), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  try {
    writeFully(dir.disk, fd, [bytes], () => undefined);
    await dir.disk.fsync(fd);
  } catch (error) {
    removeQuietly(dir, temporary);
    throw error;
  } finally {
    closeQuietly(dir.disk, fd);
  }
  dir.disk.rename(dir.at(temporary), dir.at(name));
  await dir.sync();
}

export interface SealedTrajectory {
  options: TrajectoryWriterOptions;
  input: SealInput;
  verdict: Pick<Manifest, "status" | "reasons">;
  counts: ManifestCounts;
  files: ManifestFile[];
  head: AnchoredHead;
  sealedMs: number;
}

/** The manifest of what was recorded. */
export function describeTrajectory({ options, input, verdict, head, ...rest }: SealedTrajectory): Manifest {
  const { boot, seq, digest, bytes } = head;
  return {
    schema: MANIFEST_SCHEMA,
    format_version: FORMAT_VERSION,
    writer_version: options.writerVersion,
    trajectory_id: options.trajectoryId,
    run_id: options.runId ?? null,
    group_id: options.groupId ?? null,
    trial_id: options.trialId ?? null,
    attempt: options.attempt ?? 1,
    metadata: options.metadata ?? {},
    status: verdict.status,
    reasons: verdict.reasons,
    seal_reason: input.reason,
    counts: rest.counts,
    drift: input.drift ?? {},
    files: rest.files,
    head: { boot, seq, digest, bytes },
    sealed_ms: rest.sealedMs,
  };
}

/** A file's line in the manifest before its size is looked up. */
export type ManifestEntry = Omit<ManifestFile, "bytes">;

/** One line for every file of the trajectory: those of this boot as they were closed, those of earlier boots as they were found. */
export function listManifestFiles(
  dir: TrajectoryDir,
  earlier: ReadonlyMap<string, ManifestEntry>,
  own: readonly ClosedFile[],
): ManifestFile[] {
  const files = new Map(earlier);
  for (const file of own) files.set(file.path, entry(file.path, file, file.state));
  const { root, segments } = dir;
  const names = [
    ...root.disk.readdir(root.at(".")).filter((name) => bootOfJournal(name) !== null),
    ...segments.disk
      .readdir(segments.at("."))
      .filter((name) => segmentOfName(name) !== null)
      .map((name) => `${SEGMENTS_DIR}/${name}`),
  ];
  return names.sort().map((name) => {
    // a file in which not even a header could be written or read is listed with what it has: bytes
    const known = files.get(name) ?? {
      path: name,
      records: 0,
      head: { seq: 0, digest: "0".repeat(64) },
      state: "open" as const,
    };
    return {
      path: name,
      bytes: root.disk.lstat(root.at(name)).size,
      records: known.records,
      head: known.head,
      state: known.state,
    };
  });
}

/** What the manifest will say about the files of earlier boots, by path. */
export function manifestEntries(log: TrajectoryLog | null): Map<string, ManifestEntry> {
  const files = new Map<string, ManifestEntry>();
  for (const journal of log?.journals ?? []) {
    files.set(journal.file, entry(journal.file, journal, journal.sealed === null ? "open" : "sealed"));
  }
  for (const file of log?.segments.flatMap((segment) => segment.files) ?? []) {
    const state = file.sealed !== null ? "sealed" : file.parked !== null ? "parked" : "open";
    files.set(file.file, entry(file.file, file, state));
  }
  return files;
}

function entry(
  path: string,
  file: { records: number; head: { seq: number; digest: Uint8Array } },
  state: ManifestFile["state"],
): ManifestEntry {
  const head = { seq: Math.max(0, file.head.seq), digest: Buffer.from(file.head.digest).toString("hex") };
  return { path, records: file.records, head, state };
}
