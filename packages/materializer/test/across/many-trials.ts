/** Jobs of many small trials, and the four troubles that a trial among them can be in. */
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { decodeRecord, encodeFrame, encodeRecord, type JournalHeader, scanFile } from "@tito/format";
import { harborResult, putFile, writeTrajectory } from "../written.js";

const range = (from: number, count: number) => Array.from({ length: count }, (_, i) => from + i);

/** Two calls in one segment and, in every third trial, a third one that lost its parent's last sampled id. Sampled: 4 + 3, and 2. */
export async function writeTrial(job: string, index: number, options: { unsealed?: boolean; group?: number } = {}) {
  const task = `task${Math.floor(index / (options.group ?? 4))}`;
  const name = `${task}__${String(index).padStart(4, "0")}`;
  const dir = join(job, name);
  const [prompt, first, second] = [range(1, 8), range(100 + index, 4), range(5000, 3)];
  const line = [...prompt, ...first, 6, 7, ...second];
  const calls = [
    { prompt, sampled: first },
    { prompt: [...prompt, ...first, 6, 7], sampled: second },
    ...(index % 3 === 0 ? [{ prompt: [...line.slice(0, -1), 9], sampled: [7000, 7001] }] : []),
  ];
  await writeTrajectory(join(dir, "agent"), { id: `t${index}`, calls, unsealed: options.unsealed === true });
  // Last, as a runner does: with it the trial has ended.
  putFile(join(dir, "result.json"), harborResult({ task, name, rewards: { reward: index % 2 } }));
  return dir;
}

/** Flips a byte in the middle of the first segment file. */
export function damageTrial(dir: string, id: string): void {
  const file = join(dir, "agent", id, "segments", "000001.seg");
  const bytes = readFileSync(file);
  bytes[Math.floor(bytes.length / 2)]! ^= 0xff;
  writeFileSync(file, bytes);
}

/** Makes the journal say that a later version of the format wrote it, with checksums and chain as they have to be. */
export function makeNewer(dir: string, id: string): void {
  const file = join(dir, "agent", id, "journal.seg");
  let previous: Uint8Array = new Uint8Array(32);
  const parts = [...scanFile(file, { mode: "strict" })].flatMap((item, seq) => {
    if (item.kind !== "frame") return [];
    let payload = Buffer.from(item.payload);
    if (seq === 0) {
      const header = decodeRecord(item.type, payload, "journal")!.record as JournalHeader;
      payload = Buffer.from(encodeRecord("journal_header", { ...header, format_version: 99 }));
    }
    const frame = encodeFrame(item.type, seq, payload, previous);
    previous = frame.digest;
    return [frame.header, payload];
  });
  writeFileSync(file, Buffer.concat(parts));
}

/** Nobody but root may look into the trial's trajectory. */
export function lockTrial(dir: string, id: string): void {
  chmodSync(join(dir, "agent", id, "segments"), 0);
}
