/** A segment file of 64 kB turns, as large as wanted: what is measured by the megabyte. */
import fs from "node:fs";
import path from "node:path";
import { CHAIN_START, encodeFrame } from "../../src/frame/frame.js";
import { encodeRecord } from "../../src/record/record-codec.js";
import { RecordType } from "../../src/record/records.js";
import { ids, sha, turn } from "./records.js";

/** Writes `dir/segments/000001.seg` with about `bytes` bytes and answers its path. It has no journal: verify calls it tampered, after it has walked it all. */
export function writeLargeSegment(dir: string, bytes: number): string {
  const file = path.join(dir, "segments/000001.seg");
  fs.mkdirSync(path.dirname(file), { recursive: true });
  const fd = fs.openSync(file, "wx");
  const header = encodeRecord("segment_header", {
    format_version: 1,
    writer_version: "t",
    trajectory_id: "t1",
    segment: 1,
    boot_id: "b",
    config_sha256: sha("c"),
    created_ms: 1,
    previous_head: null,
    parent: null,
    continues: null,
  });
  const payload = encodeRecord("turn", turn("a", ids(1, 15_500), ids(1, 500)));
  let frame = encodeFrame(RecordType.segment_header, 0, header, CHAIN_START);
  fs.writevSync(fd, [frame.header, frame.payload]);
  for (let seq = 1; seq * payload.length < bytes; seq++) {
    frame = encodeFrame(RecordType.turn, seq, payload, frame.digest);
    fs.writevSync(fd, [frame.header, frame.payload]);
  }
  fs.closeSync(fd);
  return file;
}
