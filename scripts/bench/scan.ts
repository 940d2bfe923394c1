/**
 * Walking a segment file frame by frame (G7), from the page cache, in processor time, rounds interleaved. Two anchors: our own walk without the chain, and
 * the plainest program that could check a file, one read and one `zlib.crc32` a record.
 */
import fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import zlib from "node:zlib";
import { FRAME_HEADER_BYTES, scanFile } from "../../packages/format/src/index.js";
import { writeLargeSegment } from "../../packages/format/test/support/large-segment.js";

interface Row {
  name: string;
  value: number;
  unit: string;
  ratioTo?: string;
}

const FILE_BYTES = 128e6;
const ROUNDS = 9;

/** Gigabytes a second of processor time; `work` answers the bytes that it walked. */
function rate(work: () => number): number {
  const start = process.cpuUsage();
  const bytes = work();
  const { user, system } = process.cpuUsage(start);
  if (bytes < FILE_BYTES * 0.9) throw new Error("the file was not walked to its end");
  return bytes / (user + system) / 1e3;
}

function walk(path: string, skipChain: boolean): number {
  let bytes = 0;
  for (const item of scanFile(path, { mode: "strict", skipChain }))
    if (item.kind === "frame") bytes += item.end - item.offset;
  return bytes;
}

function readPlainly(path: string): number {
  const { crc32 } = zlib as unknown as { crc32: (data: Uint8Array) => number };
  const fd = fs.openSync(path, "r");
  const header = Buffer.alloc(FRAME_HEADER_BYTES);
  let at = 0;
  let sum = 0;
  while (fs.readSync(fd, header, 0, header.length, at) === header.length) {
    const payload = Buffer.allocUnsafe(header.readUInt32BE(62));
    fs.readSync(fd, payload, 0, payload.length, at + header.length);
    sum ^= crc32(header) ^ crc32(payload);
    at += header.length + payload.length;
  }
  fs.closeSync(fd);
  if (sum === 0) throw new Error("nothing was summed");
  return at;
}

export async function run(): Promise<Row[]> {
  const dir = fs.mkdtempSync(join(tmpdir(), "tito-bench-scan-"));
  try {
    const path = writeLargeSegment(dir, FILE_BYTES);
    let plain = 0;
    let checksums = 0;
    let chain = 0;
    for (let round = 0; round < ROUNDS; round++) {
      // zlib.crc32 came with Node 20.15
      if ("crc32" in zlib)
        plain = Math.max(
          plain,
          rate(() => readPlainly(path)),
        );
      checksums = Math.max(
        checksums,
        rate(() => walk(path, true)),
      );
      chain = Math.max(
        chain,
        rate(() => walk(path, false)),
      );
    }
    return [
      { name: "plain read and zlib.crc32", value: plain, unit: "GB/s" },
      { name: "checksums", value: checksums, unit: "GB/s" },
      { name: "checksums and chain", value: chain, unit: "GB/s" },
      {
        name: "checksums and chain, of the plain read (goal 0.7)",
        value: chain / plain,
        unit: "ratio",
        ratioTo: "plain read",
      },
      { name: "checksums and chain, of checksums", value: chain / checksums, unit: "ratio", ratioTo: "checksums" },
    ];
  } finally {
    fs.rmSync(dir, { recursive: true, force: true });
  }
}
