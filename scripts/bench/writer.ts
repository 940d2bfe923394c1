/**
 * The writer against its anchors: appending frames against a bare `writev` of the same bytes (G5), sixteen turns in flight against one at a time (G6),
 * and the bytes of a call against its raw arrays (G15). Appending is measured in processor time, waiting for syncs in time on the clock. Rounds are
 * interleaved; each figure is the best of them.
 */
import { createHash } from "node:crypto";
import fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { nodeDisk } from "../../packages/format/src/disk/disk.js";
import { crc32c } from "../../packages/format/src/frame/crc32c.js";
import { encodeRecord, type TrajectoryWriter } from "../../packages/format/src/index.js";
import { FrameFile } from "../../packages/format/src/write/frame-file.js";
import { ids, openWriter, turn } from "../../packages/format/test/support/records.js";

interface Row {
  name: string;
  value: number;
  unit: string;
  ratioTo?: string;
}

const RECORD_BYTES = 69_000;
const RECORDS = 600;
const ROUNDS = 9;
const TURNS = 64;

/** Best seconds of each variant, rounds interleaved so that a busy moment hits all of them. */
async function bestOf(variants: Record<string, () => Promise<number> | number>): Promise<Record<string, number>> {
  const best: Record<string, number> = {};
  for (let round = 0; round < ROUNDS; round++) {
    for (const [name, run] of Object.entries(variants)) {
      best[name] = Math.min(best[name] ?? Number.POSITIVE_INFINITY, await run());
    }
  }
  return best;
}

/** Processor seconds: what other programs take of the machine does not count. */
function seconds(work: () => void): number {
  const start = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1e6;
}

function appendVariants(dir: string): Record<string, () => number> {
  const payload = encodeRecord("turn", turn("a", ids(1, 16_000), ids(1, 500))).slice(0, RECORD_BYTES);
  const header = Buffer.alloc(66);
  let file = 0;
  const onFile = (append: (fd: number) => void): number => {
    const path = join(dir, `bare-${file++}`);
    const fd = fs.openSync(path, "ax");
    const spent = seconds(() => {
      for (let i = 0; i < RECORDS; i++) append(fd);
    });
    fs.closeSync(fd);
    fs.unlinkSync(path);
    return spent;
  };
  return {
    writev: () => onFile((fd) => void fs.writevSync(fd, [header, payload])),
    crc: () =>
      onFile((fd) => {
        header.writeUInt32BE(crc32c(payload), 18);
        header.writeUInt32BE(crc32c(header), 23);
        fs.writevSync(fd, [header, payload]);
      }),
    // the least that any writer takes that has a SHA-256 chain
    floor: () =>
      onFile((fd) => {
        createHash("sha256").update(header).update(payload).digest();
        fs.writevSync(fd, [header, payload]);
      }),
    frames: () => {
      const path = join(dir, `frames-${file++}`);
      const frames = new FrameFile({ disk: nodeDisk, path, name: path, durability: "write", mac: null });
      const spent = seconds(() => {
        for (let i = 0; i < RECORDS; i++) frames.append(0x02, payload);
      });
      frames.close();
      fs.unlinkSync(path);
      return spent;
    },
  };
}

/** Seconds for all turns with so many in flight: each waits for its own release before its slot takes the next. */
async function commitTurns(dir: string, inFlight: number): Promise<number> {
  const out = fs.mkdtempSync(join(dir, "turns-"));
  const writer: TrajectoryWriter = await openWriter(out);
  await writer.commitTurn({ open: { parent: null }, turn: turn("first", ids(1, 10), ids(1, 10)) });
  const records = Array.from({ length: TURNS }, (_, i) => turn(`t${i}`, ids(1, 200), ids(1, 50)));
  const start = process.hrtime.bigint();
  await Promise.all(
    Array.from({ length: inFlight }, async () => {
      for (let next = records.pop(); next !== undefined; next = records.pop())
        await writer.commitTurn({ segment: 1, turn: next });
    }),
  );
  const spent = Number(process.hrtime.bigint() - start) / 1e9;
  writer.abandon();
  return spent;
}

export async function run(): Promise<Row[]> {
  const dir = fs.mkdtempSync(join(tmpdir(), "tito-bench-writer-"));
  try {
    const append = await bestOf(appendVariants(dir));
    const commit = await bestOf({ one: () => commitTurns(dir, 1), sixteen: () => commitTurns(dir, 16) });
    const gigabytes = (spent: number): number => (RECORDS * RECORD_BYTES) / spent / 1e9;
    const call = encodeRecord("turn", turn("a", ids(1, 8000), ids(1, 500))).length + 66;
    const raw = 8000 * 4 + 500 * 8;
    return [
      { name: "bare writev, 69 kB records", value: gigabytes(append.writev!), unit: "GB/s" },
      { name: "checksums", value: gigabytes(append.crc!), unit: "GB/s" },
      {
        name: "checksums, of bare writev (goal 0.6)",
        value: append.writev! / append.crc!,
        unit: "ratio",
        ratioTo: "bare writev",
      },
      { name: "frames with chain", value: gigabytes(append.frames!), unit: "GB/s" },
      {
        name: "frames with chain, of bare writev (goal 0.33)",
        value: append.writev! / append.frames!,
        unit: "ratio",
        ratioTo: "bare writev",
      },
      {
        name: "frames with chain, of writev and SHA-256 alone",
        value: append.floor! / append.frames!,
        unit: "ratio",
        ratioTo: "writev and SHA-256",
      },
      { name: "one turn at a time", value: TURNS / commit.one!, unit: "turns/s" },
      { name: "sixteen in flight", value: TURNS / commit.sixteen!, unit: "turns/s" },
      {
        name: "sixteen in flight, of one (goal 4)",
        value: commit.one! / commit.sixteen!,
        unit: "ratio",
        ratioTo: "one at a time",
      },
      { name: "bytes of a call of 8,000 + 500 tokens", value: call, unit: "bytes" },
      { name: "bytes of a call, of raw arrays (goal 1.05)", value: call / raw, unit: "ratio", ratioTo: "raw arrays" },
    ];
  } finally {
    fs.rmSync(dir, { recursive: true, force: true });
  }
}
