/** The bytes of a segment file made in memory, and where its frames begin and end. */
import { CHAIN_START, encodeFrame } from "../../src/frame/frame.js";
import { encodeRecord } from "../../src/record/record-codec.js";
import { RecordType } from "../../src/record/records.js";
import { Conversation, sha } from "./records.js";

export interface SegmentBytes {
  bytes: Buffer;
  /** `starts[i]` of frame i, and the file's length at the end. */
  starts: number[];
}

/** A header, turns until the file has about `bytesMin` bytes, a seal. */
export function makeSegment(bytesMin: number): SegmentBytes {
  const parts: Buffer[] = [];
  const starts = [0];
  let previous = CHAIN_START;
  let seq = 0;
  const add = (type: number, payload: Uint8Array): void => {
    const frame = encodeFrame(type, seq++, payload, previous);
    previous = frame.digest;
    parts.push(frame.header, Buffer.from(frame.payload));
    starts.push(starts.at(-1)! + frame.header.length + payload.length);
  };
  add(
    RecordType.segment_header,
    encodeRecord("segment_header", {
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
    }),
  );
  const main = new Conversation("main", 40, 30);
  while (starts.at(-1)! < bytesMin - 300) add(RecordType.turn, encodeRecord("turn", main.next()));
  const seal = { records: seq, bytes: starts.at(-1)!, head: previous, reason: "test", sealed_ms: 2 };
  add(RecordType.seal, encodeRecord("seal", seal));
  return { bytes: Buffer.concat(parts), starts };
}
