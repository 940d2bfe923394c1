import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { CHAIN_START, encodeFrame } from "../../src/frame/frame.js";
import { decodeMac, type MacRecord } from "../../src/frame/mac.js";
import { scanFile } from "../../src/read/scan.js";
import { type AnchoredHead, parseAnchors } from "../../src/record/anchors.js";
import { packPayload } from "../../src/record/payload.js";
import { decodeRecord, encodeRecord } from "../../src/record/record-codec.js";
import { type RecordMap, RecordType, type RecordTypeName } from "../../src/record/records.js";
import { verifyTrajectory } from "../../src/verify/verify.js";
import type { VerifyStatus } from "../../src/verify/verify-types.js";
import { Conversation, ids, intent, keepDir, openWriter, tempDir, turn } from "../support/turns.js";

const KEY = () => Buffer.alloc(32, 7);

interface Evidence {
  dir: string;
  anchors: AnchoredHead[];
}

/** Three turns on two segments, sealed unless told otherwise. */
async function record(out: string, options: { seal?: boolean; key?: boolean; turns?: number } = {}): Promise<Evidence> {
  const anchors: AnchoredHead[] = [];
  const writer = await openWriter(out, {
    onAnchor: (head) => anchors.push(head),
    ...(options.key === true ? { hmacKey: KEY() } : {}),
  });
  const main = new Conversation("main");
  const commit = async (open: boolean): Promise<void> => {
    const next = main.next();
    writer.writeIntent(intent(next.call_id));
    await writer.commitTurn(open ? { open: { parent: null }, turn: next } : { segment: 1, turn: next });
    writer.writeDelivery({
      call_id: next.call_id,
      outcome: "delivered",
      bytes: 9,
      status: 200,
      detail: null,
      at_ms: 5,
    });
  };
  for (let i = 0; i < (options.turns ?? 3); i++) await commit(i === 0);
  writer.writeIntent(intent("side-1"));
  await writer.commitTurn({ open: { parent: null }, turn: turn("side-1", ids(1, 5), ids(9, 3)) });
  if (options.seal === false) writer.abandon();
  else anchors.push((await writer.seal({ reason: "test" })).head);
  return { dir: path.join(out, "t1"), anchors };
}

interface Frame {
  type: number;
  payload: Buffer;
}

function frames(file: string): Frame[] {
  return [...scanFile(file, { mode: "strict" })].flatMap((item) =>
    item.kind === "frame" ? [{ type: item.type, payload: Buffer.from(item.payload) }] : [],
  );
}

/** Writes a file anew from records: every checksum, number and digest is right. This is what an attacker with this source can do. */
function forge(file: string, edit: (records: Frame[]) => Frame[]): void {
  let previous = CHAIN_START;
  const bytes = edit(frames(file)).flatMap(({ type, payload }, seq) => {
    const frame = encodeFrame(type, seq, payload, previous);
    previous = frame.digest;
    return [frame.header, Buffer.from(frame.payload)];
  });
  fs.writeFileSync(file, Buffer.concat(bytes));
}

function edit<K extends RecordTypeName>(frame: Frame, change: (record: RecordMap[K]) => RecordMap[K]): Frame {
  const named = decodeRecord(frame.type, frame.payload, "test")!;
  return {
    type: frame.type,
    payload: Buffer.from(encodeRecord(named.name as K, change(named.record as RecordMap[K]))),
  };
}

const packMac = ({ boot, index, mac }: MacRecord): Buffer =>
  Buffer.from(
    packPayload(
      new Map<string, number | Buffer>([
        ["boot", boot],
        ["index", index],
        ["mac", Buffer.from(mac)],
      ]),
    ),
  );
const segment = (dir: string, number = 1): string => path.join(dir, `segments/00000${number}.seg`);
const journal = (dir: string): string => path.join(dir, "journal.seg");
const better = (frame: Frame): Frame =>
  edit<"turn">(frame, (record) => ({ ...record, sampled_ids: record.sampled_ids.map((id) => id + 1) }));

/** Removes what a seal left, so that the trajectory looks as if its writer had been killed. */
function unseal(dir: string): void {
  for (const name of ["COMPLETE", "manifest.json"]) fs.rmSync(path.join(dir, name), { force: true });
}

type Ends = Map<string, { seq: number; digest: Uint8Array; bytes: number }>;

function ends(dir: string, files: readonly string[]): Ends {
  const found: Ends = new Map();
  for (const file of files) {
    for (const item of scanFile(path.join(dir, file), { mode: "strict" })) {
      if (item.kind === "frame")
        found.set(`${file} ${item.seq}`, { seq: item.seq, digest: item.digest, bytes: item.end });
    }
  }
  return found;
}

/** Commits and headers brought into line with forged files; each round carries the truth one step further. */
function reconcile(dir: string): void {
  const files = fs.readdirSync(path.join(dir, "segments")).map((name) => `segments/${name}`);
  for (let round = 0; round < files.length + 1; round++) {
    const turns = ends(dir, files);
    forge(journal(dir), (all) =>
      all.map((frame) => {
        if (frame.type !== RecordType.commit) return frame;
        return edit<"commit">(frame, (commit) => ({ ...commit, ...turns.get(`${commit.file} ${commit.seq}`) }));
      }),
    );
    const heads = ends(dir, ["journal.seg"]);
    for (const file of files) {
      forge(path.join(dir, file), (all) =>
        all.map((frame, i) => {
          if (i > 0) return frame;
          return edit<"segment_header">(frame, (header) => {
            return { ...header, previous_head: heads.get(`journal.seg ${header.previous_head!.seq}`)! };
          });
        }),
      );
    }
  }
}

interface Attack {
  name: string;
  /** What is recorded before the attack. */
  options?: Parameters<typeof record>[1];
  attack: (dir: string, older: string) => void;
  without: VerifyStatus;
  with: VerifyStatus;
}

const ATTACKS: Attack[] = [
  {
    name: "1 a byte of a payload is edited",
    attack: (dir) => {
      const bytes = fs.readFileSync(segment(dir));
      bytes[bytes.length - 400] = bytes[bytes.length - 400]! ^ 1;
      fs.writeFileSync(segment(dir), bytes);
    },
    without: "damaged",
    with: "damaged",
  },
  {
    name: "2 a record is edited and its checksums are made right",
    attack: (dir) => {
      const file = segment(dir);
      const items = [...scanFile(file, { mode: "strict" })].map(
        (item) => (item.kind === "frame" ? { ...item, payload: Buffer.from(item.payload) } : null)!,
      );
      let previous = CHAIN_START;
      const bytes = items.flatMap((item, seq) => {
        const payload = seq === 2 ? better(item).payload : item.payload;
        const frame = encodeFrame(item.type, seq, payload, previous);
        // the digests of all other frames stay as they were
        previous = item.digest;
        return [frame.header, payload];
      });
      fs.writeFileSync(file, Buffer.concat(bytes));
    },
    without: "tampered",
    with: "tampered",
  },
  {
    name: "3 a record is edited and the whole file is chained anew",
    attack: (dir) => forge(segment(dir), (all) => all.map((frame, i) => (i === 2 ? better(frame) : frame))),
    without: "tampered",
    with: "tampered",
  },
  {
    name: "4 two records are swapped",
    attack: (dir) => {
      const bytes = fs.readFileSync(segment(dir));
      const at = [...scanFile(segment(dir), { mode: "strict" })].map((item) => item.offset);
      const cut = (from: number, to?: number): Buffer => bytes.subarray(from, to);
      fs.writeFileSync(
        segment(dir),
        Buffer.concat([cut(0, at[1]), cut(at[2]!, at[3]), cut(at[1]!, at[2]), cut(at[3]!)]),
      );
    },
    without: "tampered",
    with: "tampered",
  },
  {
    name: "5 a record in the middle is dropped",
    attack: (dir) => {
      const bytes = fs.readFileSync(segment(dir));
      const at = [...scanFile(segment(dir), { mode: "strict" })].map((item) => item.offset);
      fs.writeFileSync(segment(dir), Buffer.concat([bytes.subarray(0, at[2]), bytes.subarray(at[3]!)]));
    },
    without: "tampered",
    with: "tampered",
  },
  {
    name: "6 the tail of a segment is cut at a record",
    attack: (dir) => {
      const at = [...scanFile(segment(dir), { mode: "strict" })].map((item) => item.offset);
      fs.truncateSync(segment(dir), at[3]);
    },
    without: "tampered",
    with: "tampered",
  },
  {
    name: "7 the last turn is removed everywhere, as if the writer had been killed before it",
    options: { seal: false },
    attack: (dir) => {
      const all = frames(journal(dir));
      const from = all.findIndex((frame) => frame.type === RecordType.intent && frame.payload.includes("side-1"));
      forge(journal(dir), () => all.slice(0, from));
      fs.unlinkSync(segment(dir, 2));
    },
    without: "incomplete",
    with: "tampered",
  },
  {
    name: "8 a segment file is replaced by one of another trajectory",
    attack: (dir, older) => fs.copyFileSync(segment(older), segment(dir)),
    without: "tampered",
    with: "tampered",
  },
  {
    name: "9 the whole directory is rolled back to an older copy",
    options: { seal: false },
    attack: (dir, older) => {
      fs.rmSync(dir, { recursive: true });
      fs.cpSync(older, dir, { recursive: true });
    },
    without: "incomplete",
    with: "tampered",
  },
  {
    name: "10 the writer is killed and everything is written anew, with every witness in the directory made to agree",
    options: { seal: false },
    attack: (dir) => {
      // no later prompt contains what the last turn sampled
      forge(segment(dir), (all) => all.map((frame, i) => (i === 3 ? better(frame) : frame)));
      reconcile(dir);
    },
    without: "incomplete",
    with: "tampered",
  },
  {
    name: "10b as 10, in a turn whose sampled ids a later prompt contains",
    options: { seal: false },
    attack: (dir) => {
      forge(segment(dir), (all) => all.map((frame, i) => (i === 2 ? better(frame) : frame)));
      reconcile(dir);
    },
    without: "tampered",
    with: "tampered",
  },
  {
    name: "11 a segment file is deleted",
    attack: (dir) => fs.unlinkSync(segment(dir, 2)),
    without: "tampered",
    with: "tampered",
  },
  {
    name: "12 a turn is added after the seal",
    attack: (dir) => forge(segment(dir), (all) => [...all, better(all[1]!)]),
    without: "tampered",
    with: "tampered",
  },
  {
    name: "13 the manifest is edited",
    attack: (dir) => {
      const file = path.join(dir, "manifest.json");
      fs.writeFileSync(file, fs.readFileSync(file, "utf8").replace('"turns":4', '"turns":3'));
    },
    without: "tampered",
    with: "tampered",
  },
  {
    name: "14 the journal is deleted",
    attack: (dir) => fs.unlinkSync(journal(dir)),
    without: "tampered",
    with: "tampered",
  },
  {
    name: "15 the seal is taken away and the segment cut, as a kill would not leave it",
    attack: (dir) => {
      unseal(dir);
      const at = [...scanFile(segment(dir), { mode: "strict" })].map((item) => item.offset);
      fs.truncateSync(segment(dir), at[3]);
    },
    without: "tampered",
    with: "tampered",
  },
];

describe("tampering is evident", () => {
  let older: Evidence;
  beforeAll(async () => {
    older = await record(keepDir(), { seal: false, turns: 1 });
  });

  for (const { name, options, attack, without, with: anchored } of ATTACKS) {
    it(`attack ${name}: ${without} without an anchor, ${anchored} with`, async () => {
      const evidence = await record(tempDir(), options);
      const clean = verifyTrajectory(evidence.dir, { anchors: evidence.anchors });
      expect(clean.status).toBe(options?.seal === false ? "incomplete" : "complete");
      expect(clean.findings.filter((item) => item.severity !== "note" && item.code !== "not_sealed")).toEqual([]);
      attack(evidence.dir, older.dir);
      expect(verifyTrajectory(evidence.dir).status).toBe(without);
      const verdict = verifyTrajectory(evidence.dir, { anchors: evidence.anchors });
      expect(verdict.status).toBe(anchored);
      for (const finding of verdict.findings) {
        expect(finding.file).not.toBe("");
        expect(finding.message.length).toBeGreaterThan(10);
      }
    });
  }

  it("the key finds what the directory alone can not: a rewritten file, a record without its digest, another key", async () => {
    const evidence = await record(tempDir(), { seal: false, key: true });
    expect(verifyTrajectory(evidence.dir, { hmacKey: KEY() }).findings.map((item) => item.code)).toEqual([
      "not_sealed",
    ]);
    // readers without the key read the same records
    expect(verifyTrajectory(evidence.dir).findings.map((item) => item.code)).toEqual(["not_sealed"]);
    expect(verifyTrajectory(evidence.dir, { hmacKey: Buffer.alloc(32, 8) }).status).toBe("tampered");
    forge(segment(evidence.dir), (all) => all.map((frame, i) => (i === 6 ? better(frame) : frame)));
    reconcile(evidence.dir);
    expect(verifyTrajectory(evidence.dir).status).toBe("incomplete");
    const verdict = verifyTrajectory(evidence.dir, { hmacKey: KEY() });
    expect(verdict.status).toBe("tampered");
    expect(verdict.findings.map((item) => item.code)).toContain("mac_mismatch");
  });

  it("the key finds that records were removed from the end of one file", async () => {
    const evidence = await record(tempDir(), { seal: false, key: true });
    const all = frames(segment(evidence.dir));
    forge(segment(evidence.dir), () => all.slice(0, -2));
    const commits = frames(journal(evidence.dir)).filter((frame) => !frame.payload.includes("main-3"));
    forge(journal(evidence.dir), () => commits);
    expect(verifyTrajectory(evidence.dir, { hmacKey: KEY() }).status).toBe("tampered");
  });

  it("O.31 a record without its keyed digest is never taken for a torn write, whatever stands behind it", async () => {
    const evidence = await record(tempDir(), { seal: false, key: true });
    forge(segment(evidence.dir), (all) => [...all, better(all[2]!)]);
    const clean = fs.readFileSync(segment(evidence.dir));
    for (const behind of [Buffer.alloc(0), clean.subarray(0, 40), Buffer.alloc(100)]) {
      fs.writeFileSync(segment(evidence.dir), Buffer.concat([clean, behind]));
      const verdict = verifyTrajectory(evidence.dir, { hmacKey: KEY() });
      expect(verdict.findings.map((item) => item.code)).toContain("mac_missing");
      expect(verdict.status).toBe("damaged");
    }
  });

  it("O.32 what only looks like a keyed digest is a finding: of no record, of a hostile number, of garbage", async () => {
    const evidence = await record(tempDir(), { seal: false, key: true });
    const whole = fs.readFileSync(segment(evidence.dir));
    const number = decodeMac(frames(segment(evidence.dir))[1]!.payload, "test");
    const digests: Buffer[] = [
      Buffer.from("garbage"),
      packMac({ ...number, index: 90_000_000 }),
      packMac({ ...number, boot: 9000 }),
      packMac(number),
    ];
    for (const payload of digests) {
      fs.writeFileSync(segment(evidence.dir), whole);
      forge(segment(evidence.dir), (all) => [...all, { type: 0x80, payload }]);
      const verdict = verifyTrajectory(evidence.dir, { hmacKey: KEY() });
      expect(verdict.findings.map((item) => item.code)).toContain("mac_mismatch");
      expect(verdict.status).toBe("tampered");
    }
  });

  it("O.33 a bit that flips in an anchored record is damage, and another record in its place is tampering", async () => {
    const evidence = await record(tempDir());
    const bytes = fs.readFileSync(journal(evidence.dir));
    bytes[evidence.anchors[0]!.bytes - 5]! ^= 1;
    fs.writeFileSync(journal(evidence.dir), bytes);
    const verdict = verifyTrajectory(evidence.dir, { anchors: evidence.anchors });
    expect(verdict.status).toBe("damaged");
    expect(verdict.findings.map((item) => item.code)).toContain("anchor_missing");
    bytes[evidence.anchors[0]!.bytes - 5]! ^= 1;
    fs.writeFileSync(journal(evidence.dir), bytes);
    forge(journal(evidence.dir), (all) => all.toSpliced(1, 1));
    expect(verifyTrajectory(evidence.dir, { anchors: evidence.anchors }).status).toBe("tampered");
  });

  it("a trajectory that no anchor names is not confirmed by the anchors of others", async () => {
    const { dir, anchors } = await record(tempDir());
    const others = anchors.map((anchor) => ({ ...anchor, trajectory: "another" }));
    for (const given of [others, []]) {
      const verdict = verifyTrajectory(dir, { anchors: given });
      expect(verdict.status).toBe("incomplete");
      expect(verdict.findings.map((item) => item.code)).toEqual(["not_anchored"]);
    }
    expect(verifyTrajectory(dir, { anchors }).status).toBe("complete");
  });

  it("an anchor line without its line end counts when it is whole, and is no error when it is torn", async () => {
    const { anchors } = await record(tempDir());
    const text = anchors.map((anchor) => JSON.stringify(anchor)).join("\n");
    expect(parseAnchors(text, "a")).toEqual(anchors);
    expect(parseAnchors(text.slice(0, -9), "a")).toEqual(anchors.slice(0, -1));
    expect(() => parseAnchors(`{"trajectory":1}\n${text}`, "a")).toThrow("a:1: not an anchor line");
  });

  it("the key is erased once it was taken", async () => {
    const key = KEY();
    const writer = await openWriter(tempDir(), { hmacKey: key });
    expect(key.every((byte) => byte === 0)).toBe(true);
    writer.abandon();
  });

  it("the manifest's digest in COMPLETE is that of the manifest", async () => {
    const evidence = await record(tempDir());
    const manifest = fs.readFileSync(path.join(evidence.dir, "manifest.json"));
    expect(JSON.parse(fs.readFileSync(path.join(evidence.dir, "COMPLETE"), "utf8"))).toEqual({
      schema: "tito.complete/v1",
      manifest_sha256: createHash("sha256").update(manifest).digest("hex"),
    });
  });
});
