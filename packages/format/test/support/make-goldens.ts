/**
 * Made the golden files of format version 1, once: `node --import tsx packages/format/test/support/make-goldens.ts DIR`. DIR must not exist.
 * They are never made again; a later version gets a directory of its own.
 */
import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { crc32c } from "../../src/crc32c.js";
import { dumpRecords } from "../../src/dump.js";
import { CHAIN_START, encodeFrame, FRAME_HEADER_BYTES } from "../../src/frame.js";
import { packPayload } from "../../src/payload.js";
import { encodeRecord } from "../../src/record-codec.js";
import { RecordType } from "../../src/records.js";
import { scanFile } from "../../src/scan.js";
import { createTrajectoryWriter, type TrajectoryWriter } from "../../src/writer.js";
import { Conversation, concat, ids, intent, sha, turn } from "./records.js";

const root = path.resolve(process.argv[2] ?? "");
fs.mkdirSync(root, { recursive: false });
let clock = 1_790_000_000_000;

function open(trajectoryId: string, more: { hmacKey?: Uint8Array } = {}): Promise<TrajectoryWriter> {
  return createTrajectoryWriter({
    out: root,
    trajectoryId,
    runId: "run-1",
    groupId: "group-1",
    trialId: "trial-1",
    attempt: 2,
    metadata: { task: "sum", __proto__key: "kept" },
    configJson: '{"model":"m","upstream":"http://127.0.0.1:8000"}',
    writerVersion: "0.1.0",
    now: () => clock++,
    ...more,
  });
}

/** Every record type, two boots, a branch, float64 and missing log probabilities, the largest id, text of every kind. */
async function makeTrajectory(): Promise<void> {
  const main = new Conversation("main");
  const first = await open("trajectory");
  const one = main.next({
    messages_new: [
      { role: "system", content: "You are brief." },
      {
        role: "user",
        content: [
          { type: "text", text: "Zwölf × 3? 数 🦀" },
          { type: "other", kind: "image_url" },
        ],
      },
    ],
    tools: [{ name: "calc", description: "adds", parameters: '{"type": "object"}' }],
    tools_sha256: sha("tools"),
    message: {
      role: "assistant",
      content: null,
      reasoning: "hm",
      tool_calls: [{ id: "c1", name: "calc", arguments: '{"a": 1e3}' }],
    },
    finish_reason: "tool_calls",
    stop_reason: 151645,
    sampling: { temperature: 1, top_p: 1, seed: 7, stop: ["</s>"], logit_bias: { "5": -1.5 }, nothing: null },
  });
  first.writeIntent(intent("main-1", '{"messages":["one"],"stream":true}'));
  await first.commitTurn({ open: { parent: null }, turn: one });
  first.writeDelivery({
    call_id: "main-1",
    outcome: "delivered",
    bytes: 420,
    status: 200,
    detail: null,
    at_ms: clock++,
  });
  const two = main.next({
    tools: null,
    tools_sha256: sha("tools"),
    messages_keep: 3,
    messages_new: [{ role: "tool", tool_call_id: "c1", content: "1000" }],
    logprobs: Float64Array.of(-0.1, Number.NaN, -1.2345678901234567, Number.NaN),
    logprob_gaps: [
      { index: 1, was: "null" },
      { index: 3, was: "-Infinity" },
    ],
    weight_versions: [
      { version: "v1", start: 0, end: 1 },
      { version: "v2", start: 1, end: 4 },
    ],
  });
  first.writeIntent(intent("main-2", '{"messages":["one","two"],"stream":true}'));
  await first.commitTurn({ segment: 1, turn: two });
  first.writeIntent(intent("lost-1"));
  first.writeJournal("uncaptured", {
    call_id: "lost-1",
    reason: "upstream_error",
    status: 503,
    detail: "busy",
    lost_tokens: false,
    at_ms: clock++,
  });
  first.writeJournal("replay", { call_id: "main-2", replay_call_id: "main-2b", matched_by: "body", at_ms: clock++ });
  first.abandon();

  const second = await open("trajectory");
  second.writeIntent(intent("main-3", '{"messages":["one","two","three"],"stream":true}'));
  await second.commitTurn({ segment: 1, turn: main.next({ logprobs: null, defects: ["logprobs_missing"] }) });
  const branch = turn("branch-1", concat(main.line.slice(0, 9), ids(7000, 3)), Int32Array.of(0, 2_147_483_647), 9, {
    lane: "sub:x",
  });
  second.writeIntent(intent("branch-1"));
  await second.commitTurn({ open: { parent: { segment: 1, tokens: 9 } }, turn: branch });
  second.writeDelivery({
    call_id: "branch-1",
    outcome: "failed",
    bytes: 0,
    status: 200,
    detail: "ECONNRESET",
    at_ms: clock++,
  });
  await second.seal({ reason: "sigterm", drift: { identical_prompt: 1 } });
}

async function makeKeyed(): Promise<void> {
  const writer = await open("keyed", { hmacKey: Buffer.alloc(32, 7) });
  const main = new Conversation("main");
  await writer.commitTurn({ open: { parent: null }, turn: main.next() });
  await writer.commitTurn({ segment: 1, turn: main.next() });
  await writer.seal({ reason: "sigterm" });
}

/** Files that a reader must live with, made from a whole one. */
function makeDamaged(): void {
  const whole = fs.readFileSync(path.join(root, "trajectory/segments/000001.seg"));
  const offsets = [...scanFile(path.join(root, "trajectory/segments/000001.seg"), { mode: "strict" })].map(
    (item) => item.offset,
  );
  const last = offsets.at(-1)!;
  const put = (name: string, bytes: Uint8Array): void => {
    fs.mkdirSync(path.dirname(path.join(root, name)), { recursive: true });
    fs.writeFileSync(path.join(root, name), bytes);
  };
  const flipped = (at: number): Buffer => {
    const bytes = Buffer.from(whole);
    bytes[at] = bytes[at]! ^ 0x10;
    return bytes;
  };
  put("torn/in-header.seg", whole.subarray(0, last + 30));
  put("torn/in-payload.seg", whole.subarray(0, last + FRAME_HEADER_BYTES + 100));
  put("torn/zeros.seg", Buffer.concat([whole.subarray(0, last), Buffer.alloc(4096)]));
  put("torn/empty.seg", Buffer.alloc(0));
  put("flipped/length-of-last.seg", flipped(last + 63));
  put("flipped/payload-of-second.seg", flipped(offsets[1]! + 500));
  put("flipped/magic-of-second.seg", flipped(offsets[1]! + 3));
  makeHostile(put);
}

/** Files whose checksums are right and whose content is not. */
function makeHostile(put: (name: string, bytes: Uint8Array) => void): void {
  const header = encodeRecord("segment_header", {
    format_version: 1,
    writer_version: "0.1.0",
    trajectory_id: "hostile",
    segment: 1,
    boot_id: "b",
    config_sha256: sha("c"),
    created_ms: clock++,
    previous_head: null,
    parent: null,
    continues: null,
  });
  const file = (type: number, payload: Uint8Array): Buffer => {
    const first = encodeFrame(RecordType.segment_header, 0, header, CHAIN_START);
    const second = encodeFrame(type, 1, payload, first.digest);
    return Buffer.concat([first.header, first.payload, second.header, second.payload]);
  };
  put(
    "hostile/nested-arrays.seg",
    file(RecordType.turn, Buffer.concat([Buffer.from([0x81, 0xa1, 0x61]), Buffer.alloc(100_000, 0x91)])),
  );
  put("hostile/array-of-4g.seg", file(RecordType.turn, Buffer.from("81a161ddffffffff", "hex")));
  put("hostile/map-of-4g.seg", file(RecordType.turn, Buffer.from("dfffffffff", "hex")));
  put("hostile/record-extension.seg", file(RecordType.turn, Buffer.from("81a161c70172a0", "hex")));
  put("hostile/not-a-map.seg", file(RecordType.turn, Buffer.from("93010203", "hex")));
  put("hostile/wrong-fields.seg", file(RecordType.turn, packPayload(new Map([["call_id", 7]]))));
  put("hostile/unknown-type.seg", file(0x7f, packPayload(new Map([["a", 1]]))));
  put("hostile/optional-type.seg", file(0xf0, packPayload(new Map([["a", 1]]))));
  const polluting = turn("p", ids(1, 3), ids(5, 2), 0, {
    sampling: JSON.parse('{"__proto__":{"polluted":1},"constructor":2}') as Record<string, unknown>,
  });
  put("hostile/prototype-keys.seg", file(RecordType.turn, encodeRecord("turn", polluting)));
  const long = file(RecordType.turn, encodeRecord("turn", turn("q", ids(1, 3), ids(5, 2))));
  // the length says 2 GiB, and the header's checksum does not
  long.writeUInt32BE(0x7fffffff, FRAME_HEADER_BYTES + header.length + 62);
  put("hostile/length-of-2g.seg", Buffer.from(long));
  // the same, with the header's checksum made right
  const at = FRAME_HEADER_BYTES + header.length;
  long.writeUInt32BE(0, at + 23);
  long.writeUInt32BE(crc32c(long.subarray(at, at + FRAME_HEADER_BYTES)), at + 23);
  put("hostile/length-of-2g-signed.seg", long);
}

function listFiles(dir: string): string[] {
  return fs.readdirSync(dir, { withFileTypes: true }).flatMap((entry) => {
    const full = path.join(dir, entry.name);
    return entry.isDirectory() ? listFiles(full) : [full];
  });
}

await makeTrajectory();
await makeKeyed();
makeDamaged();
for (const file of listFiles(root).filter((name) => name.endsWith(".seg"))) {
  fs.writeFileSync(file.replace(/\.seg$/, ".txt"), [...dumpRecords(file, "salvage"), ""].join("\n"));
}
const sums = listFiles(root)
  .map((file) => `${createHash("sha256").update(fs.readFileSync(file)).digest("hex")}  ${path.relative(root, file)}`)
  .sort((a, b) => (a.slice(66) < b.slice(66) ? -1 : 1));
fs.writeFileSync(path.join(root, "SHA256SUMS"), `${sums.join("\n")}\n`);
