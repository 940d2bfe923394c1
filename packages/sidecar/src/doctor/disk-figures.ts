/** Figures of a file system, and what they mean for a recorder. Pure, but for the reading. */
import { statfsSync } from "node:fs";
import { type Finding, finding } from "./finding.js";

export interface DiskFigures {
  /** `f_type` of statfs(2). */
  type: number;
  freeBytes: number;
  /** 0 on file systems that make inodes as they go. */
  inodes: number;
  freeInodes: number;
}

export function diskFigures(dir: string): DiskFigures {
  const { type, bsize, bavail, files, ffree } = statfsSync(dir);
  return { type, freeBytes: bavail * bsize, inodes: files, freeInodes: ffree };
}

const MIB = 1024 * 1024;
/** A long trajectory is about 4 MB, and its writer keeps a reserve; a disk this full has no room for a second one. */
const FREE_BYTES_MIN = 16 * MIB;
const FREE_BYTES_GOOD = 1024 * MIB;
const FREE_INODES_MIN = 100;
const FREE_INODES_GOOD = 10_000;

export function judgeSpace(disk: DiskFigures): Finding {
  const message = `${(disk.freeBytes / MIB).toFixed(0)} MiB free`;
  const hint = "a trajectory of 200 turns takes about 4 MB; a full disk degrades the capture";
  if (disk.freeBytes < FREE_BYTES_MIN) return finding("free_space", "failure", message, hint);
  return disk.freeBytes < FREE_BYTES_GOOD
    ? finding("free_space", "warning", message, hint)
    : finding("free_space", "ok", message);
}

export function judgeInodes(disk: DiskFigures): Finding {
  if (disk.inodes === 0) return finding("free_inodes", "ok", "the file system makes inodes as it needs them");
  const message = `${disk.freeInodes} inodes free`;
  const hint = "each segment is a file: every drift and every sub-agent opens one";
  if (disk.freeInodes < FREE_INODES_MIN) return finding("free_inodes", "failure", message, hint);
  return disk.freeInodes < FREE_INODES_GOOD
    ? finding("free_inodes", "warning", message, hint)
    : finding("free_inodes", "ok", message);
}

const MEMORY = "it is memory: what is durable here survives the process, not the sandbox";
const NETWORK = "it is a network or shared file system: syncs are slow, and may promise more than they keep";
/** Magic numbers of statfs(2). The hint is null where the file system is as good as its disk. */
const FILE_SYSTEMS: ReadonlyMap<number, { name: string; hint: string | null }> = new Map([
  [0xef53, { name: "ext4", hint: null }],
  [0x58465342, { name: "xfs", hint: null }],
  [0x9123683e, { name: "btrfs", hint: null }],
  [0x2fc12fc1, { name: "zfs", hint: null }],
  [0xf2f52010, { name: "f2fs", hint: null }],
  [0x01021994, { name: "tmpfs", hint: MEMORY }],
  [0x858458f6, { name: "ramfs", hint: MEMORY }],
  [
    0x794c7630,
    {
      name: "overlay",
      hint: "it is the container's own layer and goes with the container: mount a volume, or copy before it ends",
    },
  ],
  [0x6969, { name: "nfs", hint: NETWORK }],
  [0xff534d42, { name: "cifs", hint: NETWORK }],
  [0xfe534d42, { name: "smb", hint: NETWORK }],
  [0x01021997, { name: "9p", hint: NETWORK }],
  [0x65735546, { name: "fuse", hint: NETWORK }],
]);

export function judgeFileSystem(type: number): Finding {
  const known = FILE_SYSTEMS.get(type >>> 0);
  if (known === undefined) return finding("file_system", "ok", `type 0x${(type >>> 0).toString(16)}`);
  return finding("file_system", known.hint === null ? "ok" : "warning", known.name, known.hint);
}

const SYNC_MS_GOOD = 20;

/** `latenciesMs` of syncs, in any order. */
export function judgeSyncs(latenciesMs: readonly number[]): Finding {
  const sorted = [...latenciesMs].sort((a, b) => a - b);
  const median = sorted[Math.floor(sorted.length / 2)] ?? 0;
  const message = `fdatasync takes ${median.toFixed(2)} ms (median of ${sorted.length}, worst ${(sorted.at(-1) ?? 0).toFixed(2)} ms)`;
  if (median <= SYNC_MS_GOOD) return finding("sync_latency", "ok", message);
  return finding(
    "sync_latency",
    "warning",
    message,
    "every answer waits for one sync; --durability write leaves it out and survives the process only",
  );
}
