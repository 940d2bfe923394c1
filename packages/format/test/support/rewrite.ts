/** A trajectory as lists of records, written anew with every frame, checksum and chain right: what somebody with this source at hand can do. */
import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { CHAIN_START, encodeFrame } from "../../src/frame/frame.js";
import { scanFile } from "../../src/read/scan.js";
import type { Manifest } from "../../src/record/manifest.js";
import { decodeRecord, encodeRecord } from "../../src/record/record-codec.js";
import { type RecordMap, RecordType, type RecordTypeName } from "../../src/record/records.js";

export interface OwnRecord {
  name: RecordTypeName;
  // biome-ignore lint/suspicious/noExplicitAny: any field of any record is changed
  record: any;
}

export type Files = Map<string, OwnRecord[]>;

interface End {
  seq: number;
  digest: Uint8Array;
  bytes: number;
}

export function readFiles(dir: string): Files {
  const names = fs.readdirSync(dir, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".seg"));
  return new Map(
    names
      .sort()
      .map((name) => [
        name,
        [...scanFile(path.join(dir, name), { mode: "strict" })].flatMap((item) =>
          item.kind === "frame" ? [decodeRecord(item.type, item.payload, name)!] : [],
        ),
      ]),
  );
}

/** Writes one file; answers where each record ends. Throws `format_invalid` for a record that no writer would write. */
function encodeFile(records: readonly OwnRecord[]): { bytes: Buffer; ends: End[] } {
  let previous = CHAIN_START;
  let length = 0;
  const ends: End[] = [];
  const parts = records.flatMap(({ name, record }, seq) => {
    const payload = encodeRecord(name, record as RecordMap[typeof name]);
    const frame = encodeFrame(RecordType[name], seq, payload, previous);
    previous = frame.digest;
    length += frame.header.length + payload.length;
    ends.push({ seq, digest: frame.digest, bytes: length });
    return [frame.header, Buffer.from(payload)];
  });
  return { bytes: Buffer.concat(parts), ends };
}

/** One file with its own closing record made right, and nothing else. `changed` stays as it is. */
export function writeFile(dir: string, name: string, records: OwnRecord[], changed: OwnRecord): void {
  closeRightly(records, changed);
  fs.writeFileSync(path.join(dir, name), encodeFile(records).bytes);
}

/** Makes the closing record tell what its file holds now. */
function closeRightly(records: OwnRecord[], changed: OwnRecord): void {
  const last = records.at(-1)!;
  if (last === changed || (last.name !== "seal" && last.name !== "parked")) return;
  const before = encodeFile(records.slice(0, -1)).ends.at(-1)!;
  Object.assign(last.record, { records: before.seq + 1, bytes: before.bytes });
  if (last.name === "seal") last.record.head = before.digest;
}

/** All files, with commits, heads, seals, manifest and COMPLETE made to agree. `changed` stays as it is. */
export function writeAll(dir: string, files: Files, changed: OwnRecord, changedManifest?: Manifest): void {
  const ends = new Map<string, End[]>();
  const written = new Map<string, Buffer>();
  for (let stable = false; !stable; ) {
    stable = true;
    for (const [name, records] of files) {
      for (const one of records) if (one !== changed) agree(one, ends);
      closeRightly(records, changed);
      const encoded = encodeFile(records);
      ends.set(name, encoded.ends);
      stable &&= written.get(name)?.equals(encoded.bytes) ?? false;
      written.set(name, encoded.bytes);
    }
  }
  for (const [name, bytes] of written) fs.writeFileSync(path.join(dir, name), bytes);
  const file = path.join(dir, "manifest.json");
  const manifest = changedManifest ?? agreeingManifest(JSON.parse(fs.readFileSync(file, "utf8")) as Manifest, ends);
  const text = `${JSON.stringify(manifest)}\n`;
  const sha256 = createHash("sha256").update(text).digest("hex");
  fs.writeFileSync(file, text);
  fs.writeFileSync(path.join(dir, "COMPLETE"), `{"schema": "tito.complete/v1","manifest_sha256":"${sha256}"}\n`);
}

function agree({ name, record }: OwnRecord, ends: ReadonlyMap<string, End[]>): void {
  if (name === "commit") {
    const { digest, bytes } = ends.get(record.file)?.[record.seq] ?? record;
    Object.assign(record, { digest, bytes });
  }
  if (name === "segment_header" && record.previous_head !== null)
    record.previous_head = ends.get("journal.seg")?.[record.previous_head.seq] ?? record.previous_head;
}

function agreeingManifest(manifest: Manifest, ends: ReadonlyMap<string, End[]>): Manifest {
  const hex = (digest: Uint8Array): string => Buffer.from(digest).toString("hex");
  const files = manifest.files.map((file) => {
    const end = ends.get(file.path)!.at(-1)!;
    return { ...file, bytes: end.bytes, records: end.seq + 1, head: { seq: end.seq, digest: hex(end.digest) } };
  });
  const { seq, bytes, digest } = ends.get("journal.seg")!.at(-1)!;
  return { ...manifest, files, head: { ...manifest.head, seq, bytes, digest: hex(digest) } };
}
