import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Disk, nodeDisk } from "../src/disk/disk.js";
import { CHAIN_START, encodeFrame, FRAME_HEADER_BYTES } from "../src/frame/frame.js";
import { readSegment, readTrajectory, rebuildBody } from "../src/read/read-trajectory.js";
import { scanFile } from "../src/read/scan.js";
import { packPayload, unpackPayload } from "../src/record/payload.js";
import { PayloadProblem, readPayload, type Wire } from "../src/record/payload-reader.js";
import { decodeRecord, encodeRecord } from "../src/record/record-codec.js";
import { RecordType } from "../src/record/records.js";
import { verifyTrajectory } from "../src/verify/verify.js";
import { memoryDisk } from "./support/memory-disk.js";
import { seededBytes } from "./support/seeded-bytes.js";
import { makeSegment } from "./support/segment-bytes.js";
import { Conversation, ids, openWriter, tempDir, turn } from "./support/turns.js";

/** Counted, so that a slow machine tries the same inputs as a fast one; `npm run check:full fresh-seeds` tries more, and others. */
const FUZZ_RUNS = Number(process.env.TITO_FUZZ_RUNS ?? 20_000);
const v1 = path.resolve(import.meta.dirname, "../../../fixtures/segments/v1");

function fuzz<T>(arbitrary: fc.Arbitrary<T>, check: (value: T) => void): void {
  fc.assert(fc.property(arbitrary, check), { numRuns: FUZZ_RUNS });
}

function readAll(bytes: Uint8Array): void {
  const pollutedBefore = Object.keys(Object.prototype).length;
  for (const item of scanFile("memory", { mode: "salvage", disk: memoryDisk(bytes) })) {
    if (item.kind !== "frame") continue;
    try {
      decodeRecord(item.type, item.payload, "memory");
    } catch (error) {
      expect(error).toMatchObject({ code: "format_invalid" });
    }
  }
  expect(Object.keys(Object.prototype)).toHaveLength(pollutedBefore);
}

describe("hostile bytes", () => {
  it("at random never crash the reader", () => {
    fuzz(fc.uint8Array({ maxLength: 2000 }), readAll);
  });

  it("in a whole file, anywhere, never crash the reader", () => {
    const { bytes } = makeSegment(4096);
    const splice = fc.record({ at: fc.nat(bytes.length), cut: fc.nat(300), put: fc.uint8Array({ maxLength: 300 }) });
    fuzz(fc.array(splice, { minLength: 1, maxLength: 4 }), (splices) => {
      let mutated: Uint8Array = bytes;
      for (const { at, cut, put } of splices) {
        mutated = Buffer.concat([mutated.subarray(0, at), put, mutated.subarray(Math.min(mutated.length, at + cut))]);
      }
      readAll(mutated);
    });
  });

  it("as a payload behind right checksums are one clear error or a record", () => {
    const payload = Buffer.from(encodeRecord("turn", turn("a", ids(1, 5), ids(9, 3))));
    const edit = fc.record({ at: fc.nat(payload.length - 1), byte: fc.nat(255) });
    fuzz(fc.tuple(fc.constantFrom(...Object.values(RecordType)), fc.array(edit, { maxLength: 5 })), ([type, edits]) => {
      const mutated = Buffer.from(payload);
      for (const { at, byte } of edits) mutated[at] = byte;
      const frame = encodeFrame(type, 0, mutated, CHAIN_START);
      readAll(Buffer.concat([frame.header, frame.payload]));
    });
  });

  it("never make the reader take more memory than the input explains", () => {
    const before = process.memoryUsage().rss;
    const bytes = fs.readFileSync(path.join(v1, "hostile/length-of-2g.seg"));
    for (const name of fs.readdirSync(path.join(v1, "hostile")).filter((file) => file.endsWith(".seg"))) {
      readAll(fs.readFileSync(path.join(v1, "hostile", name)));
    }
    // a header that claims 128 MiB and is right about its checksum, at the end of a short file
    const frame = encodeFrame(RecordType.turn, 0, bytes, CHAIN_START);
    readAll(Buffer.concat([frame.header, Buffer.alloc(10)]));
    expect(process.memoryUsage().rss - before).toBeLessThan(bytes.length * 4 + 64 * 1024 * 1024);
  });

  it("that repeat the start of a frame a hundred thousand times are read once, not once each", () => {
    const { bytes, starts } = makeSegment(4096);
    const start = bytes.subarray(0, 7);
    const many = Buffer.concat([...Array<Buffer>(100_000).fill(start), bytes]);
    const frames = [...scanFile("memory", { mode: "salvage", disk: memoryDisk(many) })].filter(
      (item) => item.kind === "frame",
    );
    expect(frames).toHaveLength(starts.length - 1);
  });
});

describe("the payload guard", () => {
  it("accepts exactly what msgpack writes from plain data, and gives it back", () => {
    const scalar = fc.oneof(fc.string(), fc.integer(), fc.double({ noNaN: true }), fc.boolean(), fc.constant(null));
    const { tree } = fc.letrec<{ tree: Wire }>((tie) => ({
      tree: fc.oneof(
        { depthSize: "small" },
        scalar,
        fc.array(tie("tree"), { maxLength: 5 }),
        fc.array(fc.tuple(fc.string(), tie("tree")), { maxLength: 5 }).map((entries) => new Map(entries)),
      ) as fc.Arbitrary<Wire>,
    }));
    fuzz(fc.array(fc.tuple(fc.string(), tree), { maxLength: 6 }), (entries) => {
      const map = new Map<string, Wire>(entries);
      const bytes = packPayload(map);
      expect(unpackPayload(bytes, "test")).toEqual(normal(map));
    });
  });

  it("refuses extensions, lone keys, bytes after the map and every truncation", () => {
    expect(() => readPayload(Buffer.from("81a161c70172a0", "hex"))).toThrow(/unreadable value/);
    expect(() => readPayload(Buffer.from("8101a161", "hex"))).toThrow(/key that is not a string/);
    expect(() => readPayload(Buffer.from("80c0", "hex"))).toThrow(/after the map/);
    const whole = packPayload(
      new Map<string, Wire>([
        ["a", [1, "text", new Uint8Array(300), 1e300]],
        ["b", new Map([["c", null]])],
      ]),
    );
    for (let cut = 0; cut < whole.length; cut++)
      expect(() => readPayload(whole.subarray(0, cut)), `cut at ${cut}`).toThrow(PayloadProblem);
  });
});

/** Zero loses its sign as an integer, as msgpack writes it. */
function normal(value: Wire): Wire {
  if (value === 0) return 0;
  if (Array.isArray(value)) return value.map(normal);
  if (value instanceof Map) return new Map([...value].map(([key, item]) => [key, normal(item)]));
  return value;
}

describe("keys that touch prototypes", () => {
  it("are data: they survive the round trip and change nothing", async () => {
    const out = tempDir();
    const writer = await openWriter(out, {
      metadata: JSON.parse('{"__proto__":"x","constructor":"y"}') as Record<string, string>,
    });
    const sampling = JSON.parse(
      '{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}},"toString":1}',
    ) as Record<string, unknown>;
    await writer.commitTurn({ open: { parent: null }, turn: new Conversation("a").next({ sampling }) });
    writer.writeIntent({
      call_id: "a-1",
      dialect: "chat",
      path: "/",
      headers: JSON.parse('{"__proto__":"h"}') as Record<string, string>,
      body: Buffer.from("{}"),
      received_ms: 1,
    });
    await writer.seal({ reason: "test" });
    const log = readTrajectory(path.join(out, "t1"), { mode: "strict" });
    const read = log.segments[0]!.turns[0]!.record.sampling;
    expect(JSON.stringify(read)).toBe(JSON.stringify(sampling));
    expect(Object.keys(log.journals[0]!.header.metadata)).toEqual(["__proto__", "constructor"]);
    expect(Object.keys(log.intents.get("a-1")!.headers)).toEqual(["__proto__"]);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
    expect(Object.getPrototypeOf(read)).toBeNull();
  });
});

describe("names and links in the way", () => {
  it.each(["../up", "a/b", "", ".", "x".repeat(65), "a\0b", "ünder", "a b"])(
    "refuses %j as a trajectory id",
    async (trajectoryId) => {
      const out = tempDir();
      await expect(openWriter(out, { trajectoryId })).rejects.toMatchObject({ code: "usage" });
      expect(fs.readdirSync(out)).toEqual([]);
    },
  );

  it("a directory that can not be made is named by its path, not by our descriptors (O.113)", async () => {
    const out = tempDir();
    const trajectory = path.join(out, "t1");
    const refused = async (disk?: Disk): Promise<unknown> => openWriter(out, disk === undefined ? {} : { disk });
    const plain = { code: "cannot_write", message: expect.not.stringContaining("/proc/") };
    const named = { code: "cannot_write", message: expect.stringContaining(trajectory) };
    fs.writeFileSync(trajectory, "in the way");
    await expect(refused()).rejects.toMatchObject(plain);
    await expect(refused()).rejects.toMatchObject(named);
    fs.rmSync(trajectory);
    for (const call of ["mkdir", "open", "readdir"] as const) {
      const disk: Disk = {
        ...nodeDisk,
        [call]: (file: string, ...rest: never[]) => {
          if (!file.startsWith("/proc/")) return (nodeDisk[call] as (...all: unknown[]) => unknown)(file, ...rest);
          throw Object.assign(new Error(`EACCES: permission denied, ${call} '${file}'`), {
            code: "EACCES",
            path: file,
          });
        },
      };
      await expect(refused(disk)).rejects.toMatchObject(plain);
      await expect(refused(disk)).rejects.toMatchObject(named);
    }
  });

  it("a planted link for the trajectory, its segments or its journal is refused and its target unchanged", async () => {
    const out = tempDir();
    const victim = path.join(out, "victim");
    fs.mkdirSync(victim);
    fs.writeFileSync(path.join(victim, "file"), "untouched");
    fs.symlinkSync(victim, path.join(out, "t1"));
    await expect(openWriter(out)).rejects.toMatchObject({ code: "cannot_write" });
    fs.unlinkSync(path.join(out, "t1"));
    fs.mkdirSync(path.join(out, "t1"));
    fs.symlinkSync(victim, path.join(out, "t1/segments"));
    await expect(openWriter(out)).rejects.toMatchObject({ code: "cannot_write" });
    fs.unlinkSync(path.join(out, "t1/segments"));
    for (const name of ["ballast", "journal.seg", "writer-0001.lock"]) {
      fs.symlinkSync(path.join(victim, "file"), path.join(out, "t1", name));
      const opened = await openWriter(out).then(
        (writer) => writer.abandon(),
        () => undefined,
      );
      expect(opened).toBeUndefined();
      expect(fs.readFileSync(path.join(victim, "file"), "utf8")).toBe("untouched");
      fs.rmSync(path.join(out, "t1"), { recursive: true });
      fs.mkdirSync(path.join(out, "t1"));
    }
    expect(fs.readdirSync(victim)).toEqual(["file"]);
  });

  it("a planted link for the next segment degrades the trajectory and writes nothing through it", async () => {
    const out = tempDir();
    const writer = await openWriter(out);
    const victim = path.join(out, "victim");
    fs.writeFileSync(victim, "untouched");
    fs.symlinkSync(victim, path.join(out, "t1/segments/000001.seg"));
    const refused = writer.commitTurn({ open: { parent: null }, turn: new Conversation("a").next() });
    await expect(refused).rejects.toMatchObject({ code: "capture_degraded" });
    expect(fs.readFileSync(victim, "utf8")).toBe("untouched");
    writer.abandon();
  });

  it("a segment that is a link or a pipe is not read through", () => {
    const out = tempDir();
    fs.symlinkSync(path.join(v1, "trajectory/segments/000001.seg"), path.join(out, "000001.seg"));
    expect(() => readSegment(path.join(out, "000001.seg"), { mode: "salvage" })).toThrowError(/not a file/);
    const pipe = path.join(out, "000002.seg");
    makePipe("mkfifo", pipe);
    expect(() => readSegment(pipe, { mode: "salvage" })).toThrowError(/not a file/);
  });

  it("O.60 a link, a pipe or a directory in any file's place is a finding, and nothing is waited for", async () => {
    const whole = tempDir();
    const writer = await openWriter(whole);
    await writer.commitTurn({ open: { parent: null }, turn: new Conversation("a").next() });
    await writer.seal({ reason: "test" });
    const links = (file: string): void => fs.symlinkSync(path.join(whole, "t1", path.basename(file)), file);
    for (const name of ["journal.seg", "segments/000001.seg", "manifest.json", "COMPLETE"]) {
      for (const plant of [links, (file: string) => makePipe("mkfifo", file), (file: string) => fs.mkdirSync(file)]) {
        const dir = path.join(tempDir(), "t1");
        fs.cpSync(path.join(whole, "t1"), dir, { recursive: true });
        fs.rmSync(path.join(dir, name));
        plant(path.join(dir, name));
        expect(verifyTrajectory(dir).status, name).toBe("tampered");
      }
    }
    const locked = tempDir();
    fs.mkdirSync(path.join(locked, "t1"));
    makePipe("mkfifo", path.join(locked, "t1/writer-0001.lock"));
    (await openWriter(locked)).abandon();
  });

  it("a planted pipe for the next segment is refused at once, not waited for", async () => {
    const out = tempDir();
    const writer = await openWriter(out);
    makePipe("mkfifo", path.join(out, "t1/segments/000001.seg"));
    const refused = writer.commitTurn({ open: { parent: null }, turn: new Conversation("a").next() });
    await expect(refused).rejects.toMatchObject({ code: "capture_degraded" });
    writer.abandon();
  });
});

function makePipe(program: string, file: string): void {
  expect(spawnSync(program, [file]).status).toBe(0);
}

describe("a trajectory of hostile files", () => {
  it("is data with gaps, and a verdict", () => {
    const out = tempDir();
    fs.mkdirSync(path.join(out, "t/segments"), { recursive: true });
    fs.writeFileSync(path.join(out, "t/manifest.json"), "{");
    fs.writeFileSync(path.join(out, "t/journal.seg"), seededBytes(3000));
    const hostile = fs.readdirSync(path.join(v1, "hostile")).filter((name) => name.endsWith(".seg"));
    for (const [i, name] of hostile.entries()) {
      const segment = path.join(out, `t/segments/${String(i + 1).padStart(6, "0")}.seg`);
      fs.copyFileSync(path.join(v1, "hostile", name), segment);
    }
    fs.writeFileSync(path.join(out, "t/segments/000099.seg"), seededBytes(FRAME_HEADER_BYTES));
    const log = readTrajectory(path.join(out, "t"), { mode: "salvage" });
    expect(log.gaps.length).toBeGreaterThan(5);
    expect(() => rebuildBody(log, "nobody")).toThrowError(/no intent/);
    expect(["damaged", "tampered"]).toContain(verifyTrajectory(path.join(out, "t")).status);
  });
});
