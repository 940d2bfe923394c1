/** Edits of a recorded trajectory by somebody with this source at hand: frames and files are changed, and every checksum and digest in the file is made right. */
import fs from "node:fs";
import path from "node:path";
import { decodeRecord, encodeFrame, encodeRecord, RecordType, scanFile, type TurnRecord } from "@tito/format";

interface Frame {
  type: number;
  payload: Buffer;
}

/** Does one edit, chosen by `random`, and says which. Null when there was nothing to edit. */
export function tamper(dir: string, random: () => number): string | null {
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)]!;
  if (!fs.existsSync(dir)) return null;
  const names = fs.readdirSync(dir, { recursive: true, encoding: "utf8" });
  const files = names.filter((name) => name.endsWith(".seg")).sort();
  if (files.length === 0) return null;
  const file = pick(files);
  const frames = readFrames(path.join(dir, file));
  if (frames.length < 2) return null;
  const kind = pick(["remove", "edit", "swap", "repeat", "cut", "delete", "exchange"] as const);
  const at = Math.floor(random() * frames.length);
  const changed = change(frames, kind, at);
  if (kind === "delete") fs.unlinkSync(path.join(dir, file));
  else if (kind === "exchange") {
    const other = pick(files);
    if (other === file) return null;
    const bytes = fs.readFileSync(path.join(dir, other));
    fs.copyFileSync(path.join(dir, file), path.join(dir, other));
    fs.writeFileSync(path.join(dir, file), bytes);
  } else if (changed === null) return null;
  else fs.writeFileSync(path.join(dir, file), chain(changed));
  return `${kind} ${at} of ${frames.length} in ${file}`;
}

function readFrames(file: string): Frame[] {
  return [...scanFile(file, { mode: "salvage" })].flatMap((item) =>
    item.kind === "frame" ? [{ type: item.type, payload: Buffer.from(item.payload) }] : [],
  );
}

function change(frames: readonly Frame[], kind: string, at: number): Frame[] | null {
  switch (kind) {
    case "remove":
      return frames.toSpliced(at, 1);
    case "cut":
      return frames.slice(0, at);
    case "repeat":
      return frames.toSpliced(at, 0, frames[at]!);
    case "swap":
      return at === 0 ? null : frames.toSpliced(at - 1, 2, frames[at]!, frames[at - 1]!);
    case "edit":
      return frames[at]!.type === RecordType.turn ? frames.with(at, edited(frames[at]!)) : null;
    default:
      return null;
  }
}

function edited({ type, payload }: Frame): Frame {
  const record = decodeRecord(type, payload, "tamper")!.record as TurnRecord;
  const sampled_ids = record.sampled_ids.map((id) => id + 1);
  return { type, payload: Buffer.from(encodeRecord("turn", { ...record, sampled_ids })) };
}

function chain(frames: readonly Frame[]): Buffer {
  let previous: Uint8Array = new Uint8Array(32);
  const parts = frames.flatMap(({ type, payload }, seq) => {
    const frame = encodeFrame(type, seq, payload, previous);
    previous = frame.digest;
    return [frame.header, payload];
  });
  return Buffer.concat(parts);
}
