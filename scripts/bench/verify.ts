/** `verify` of a large trajectory against walking the same file: what decoding and comparing records costs on top. Processor time, rounds interleaved. */
import fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { scanFile, verifyTrajectory } from "../../packages/format/src/index.js";
import { writeLargeSegment } from "../../packages/format/test/support/large-segment.js";

interface Row {
  name: string;
  value: number;
  unit: string;
  ratioTo?: string;
}

const FILE_BYTES = 128e6;
const ROUNDS = 7;

/** Gigabytes a second of processor time. */
function rate(work: () => void): number {
  const start = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(start);
  return FILE_BYTES / (user + system) / 1e3;
}

export async function run(): Promise<Row[]> {
  const dir = fs.mkdtempSync(join(tmpdir(), "tito-bench-verify-"));
  try {
    const path = writeLargeSegment(dir, FILE_BYTES);
    const walk = (): void => {
      let frames = 0;
      for (const item of scanFile(path, { mode: "strict" })) if (item.kind === "frame") frames++;
      if (frames < 1000) throw new Error("not all was walked");
    };
    const verify = (): void => {
      if (verifyTrajectory(dir).counts.bytes < FILE_BYTES * 0.9) throw new Error("not all was verified");
    };
    let walked = 0;
    let verified = 0;
    for (let round = 0; round < ROUNDS; round++) {
      walked = Math.max(walked, rate(walk));
      verified = Math.max(verified, rate(verify));
    }
    return [
      { name: "walking with checksums and chain", value: walked, unit: "GB/s" },
      { name: "verify", value: verified, unit: "GB/s" },
      { name: "verify, of walking", value: verified / walked, unit: "ratio", ratioTo: "walking" },
    ];
  } finally {
    fs.rmSync(dir, { recursive: true, force: true });
  }
}
