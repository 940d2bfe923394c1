/** Puts manifest.json, then COMPLETE, into a trajectory's directory, each durable before the next step. */
import { createHash } from "node:crypto";
import fs from "node:fs";
import { writeFully } from "./disk.js";
import type { Manifest, ManifestFile } from "./manifest.js";
import type { ClosedFile } from "./segment-pool.js";
import {
  bootOfJournal,
  COMPLETE_FILE,
  type HeldDir,
  MANIFEST_FILE,
  removeQuietly,
  SEGMENTS_DIR,
  segmentOfName,
  type TrajectoryDir,
} from "./trajectory-dir.js";
import type { TrajectoryLog } from "./trajectory-log.js";

const TEMPORARY = "manifest.json.tmp";

/** Writes both files; answers the manifest's SHA-256 in hex. Throws the system error, with COMPLETE not written. */
export async function writeManifest(dir: HeldDir, manifest: Manifest): Promise<string> {
  const bytes = Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`);
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  removeQuietly(dir, TEMPORARY);
  await writeNewFile(dir, TEMPORARY, bytes);
  dir.disk.rename(dir.at(TEMPORARY), dir.at(MANIFEST_FILE));
  await dir.sync();
  const complete = { schema: "tito.complete/v1", manifest_sha256: sha256 };
  await writeNewFile(dir, COMPLETE_FILE, Buffer.from(`${JSON.stringify(complete)}\n`));
  await dir.sync();
  return sha256;
}

async function writeNewFile(dir: HeldDir, name: string, bytes: Uint8Array): Promise<void> {
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = fs.constants;
  const fd = dir.disk.open(dir.at(name), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  try {
    writeFully(dir.disk, fd, [bytes], () => undefined);
    await dir.disk.fsync(fd);
  } catch (error) {
    removeQuietly(dir, name);
    throw error;
  } finally {
    dir.disk.close(fd);
  }
}

/** One line for every file of the trajectory: those of this boot as they were closed, those of earlier boots as they were found. */
export function listManifestFiles(
  dir: TrajectoryDir,
  earlier: TrajectoryLog | null,
  own: readonly ClosedFile[],
): ManifestFile[] {
  const files = new Map<string, Omit<ManifestFile, "bytes">>();
  for (const journal of earlier?.journals ?? []) {
    files.set(journal.file, entry(journal.file, journal, journal.sealed === null ? "open" : "sealed"));
  }
  for (const file of earlier?.segments.flatMap((segment) => segment.files) ?? []) {
    const state = file.sealed !== null ? "sealed" : file.parked !== null ? "parked" : "open";
    files.set(file.file, entry(file.file, file, state));
  }
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

function entry(
  path: string,
  file: { records: number; head: { seq: number; digest: Uint8Array } },
  state: ManifestFile["state"],
): Omit<ManifestFile, "bytes"> {
  const head = { seq: Math.max(0, file.head.seq), digest: Buffer.from(file.head.digest).toString("hex") };
  return { path, records: file.records, head, state };
}
