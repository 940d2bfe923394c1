import fs from "node:fs";
import path from "node:path";
import {
  type AnchoredHead,
  LIMITS,
  readTrajectory,
  rebuildLines,
  type TrajectoryWriter,
  type TrajectoryWriterOptions,
  turnsInCommitOrder,
  verifyTrajectory,
} from "@tito/format";
import { describe, expect, it } from "vitest";
import { FaultDisk } from "../src/fault-disk.js";
import { Conversation, concat, ids, openWriter, turn } from "../src/turns.js";
import { tempDir } from "./temp-dir.js";

// One test for each kind of bug that random histories (disk-histories.test.ts) found.

/** A disk on which the syncs of one file wait for `go`, and then fail when they are told to. */
class HeldDisk extends FaultDisk {
  private readonly fds = new Map<number, string>();
  private go: (error: Error | null) => void = () => undefined;
  private readonly gate = new Promise<Error | null>((resolve) => {
    this.go = resolve;
  });

  constructor(private readonly held: string) {
    super();
  }

  override open(file: string, flags: number, mode?: number): number {
    const fd = super.open(file, flags, mode);
    this.fds.set(fd, path.basename(file));
    return fd;
  }

  override async fdatasync(fd: number): Promise<void> {
    const error = this.fds.get(fd) === this.held ? await this.gate : null;
    if (error !== null) throw error;
    await super.fdatasync(fd);
  }

  letGo(error: Error | null = null): void {
    this.go(error);
  }
}

/** The next process after a kill: locks name this one, which lives on. */
function reopen(
  out: string,
  disk: FaultDisk,
  options: Partial<TrajectoryWriterOptions> = {},
): Promise<TrajectoryWriter> {
  for (const name of fs.readdirSync(path.join(out, "t1"))) {
    if (name.endsWith(".lock")) fs.writeFileSync(path.join(out, "t1", name), "999999999 1\n");
  }
  return openWriter(out, { ...options, disk });
}

function expectExact(out: string, callIds: readonly string[]): void {
  const log = readTrajectory(path.join(out, "t1"), { mode: "tail" });
  const lines = rebuildLines(log);
  const exact = turnsInCommitOrder(log).filter((item) => lines.statusOf(item) === "exact");
  expect(exact.map((item) => item.record.call_id)).toEqual(expect.arrayContaining([...callIds]));
}

function tampered(out: string, anchors?: readonly AnchoredHead[]): string[] {
  const { findings } = verifyTrajectory(path.join(out, "t1"), anchors === undefined ? {} : { anchors });
  return findings.flatMap((finding) => (finding.severity === "tampered" ? [`${finding.code} ${finding.message}`] : []));
}

const root = { parent: null };
const later = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

describe("turns at the same time", () => {
  it("O.20 an anchor covers no commit whose turn is not durable yet", async () => {
    const out = tempDir();
    const disk = new HeldDisk("000001.seg");
    const writer = await openWriter(out, { disk });
    const before = writer.head();
    const committed = writer.commitTurn({ open: root, turn: new Conversation("a").next() });
    for (let i = 0; i < 5; i++) await later();
    // the journal was synced long ago; the turn was not
    const anchor = writer.head();
    expect(anchor).toEqual(before);
    const cut = path.join(tempDir(), "out");
    fs.cpSync(out, cut, { recursive: true });
    fs.truncateSync(path.join(cut, "t1/segments/000001.seg"), 0);
    expect(tampered(cut, [anchor])).toEqual([]);
    disk.letGo();
    await committed;
    expect(writer.head().seq).toBeGreaterThan(before.seq);
    writer.abandon();
  });

  it("O.21 a turn that builds on one that can not be made durable is not released", async () => {
    const out = tempDir();
    const disk = new HeldDisk("000001.seg");
    const anchors: AnchoredHead[] = [];
    const writer = await openWriter(out, { disk, onAnchor: (head) => anchors.push(head) });
    const first = turn("first", ids(1, 20), ids(100, 3));
    const second = turn("second", concat(ids(1, 20), ids(200, 2)), ids(300, 3), 20);
    const apart = turn("apart", ids(1, 9), ids(400, 3));
    const results = Promise.allSettled([
      writer.commitTurn({ open: root, turn: first }),
      writer.commitTurn({ open: { parent: { segment: 1, tokens: 20 } }, turn: second }),
      writer.commitTurn({ open: root, turn: apart }),
    ]);
    disk.letGo(Object.assign(new Error("EIO"), { code: "EIO" }));
    expect((await results).map((result) => result.status)).toEqual(["rejected", "rejected", "fulfilled"]);
    await writer.seal({ reason: "test" });
    fs.truncateSync(path.join(out, "t1/segments/000001.seg"), 0);
    expectExact(out, ["apart"]);
    expect(tampered(out, anchors)).toEqual([]);
  });
});

describe("a boot that goes on", () => {
  it.each([0, 1])(
    "O.22 from a turn whose commit frame was never written, behind %i whole ones: also for the boot after it",
    async (whole) => {
      const out = tempDir();
      const disk = new FaultDisk();
      const main = new Conversation("main");
      const first = await openWriter(out, { disk });
      if (whole === 1) await first.commitTurn({ open: root, turn: main.next() });
      // header and turn frame are written where a segment begins, the turn frame where it goes on; then nothing more
      disk.setFault({ error: "EIO", at: whole === 1 ? 2 : 4, forever: true, calls: ["writev", "open"] });
      await first
        .commitTurn(whole === 1 ? { segment: 1, turn: main.next() } : { open: root, turn: main.next() })
        .catch(() => undefined);
      const second = await reopen(out, disk.kill());
      expect(second.recovered!.lines.lineLength(1)).toBe(main.line.length);
      const parent = { segment: 1, tokens: main.line.length };
      await second.commitTurn({ open: { parent }, turn: main.next() });
      await second.commitTurn({ segment: 2, turn: main.next() });
      second.abandon();
      const third = await openWriter(out, {});
      expect(Buffer.from(third.recovered!.lines.line(2)!.buffer)).toEqual(Buffer.from(main.line.buffer));
      await third.commitTurn({ segment: 2, turn: main.next() });
      await third.seal({ reason: "test" });
      expectExact(out, ["main-1", "main-2", "main-3"]);
      expect(tampered(out)).toEqual([]);
    },
  );

  it("O.23 does not build on a turn that was refused because its sync failed", async () => {
    const out = tempDir();
    const disk = new FaultDisk();
    const main = new Conversation("main");
    const first = await openWriter(out, { disk });
    await first.commitTurn({ open: root, turn: main.next() });
    const released = main.line.length;
    // the segment's, not the journal's
    disk.setFault({ error: "EIO", at: 1, calls: ["fdatasync"] });
    await expect(first.commitTurn({ segment: 1, turn: main.next() })).rejects.toMatchObject({
      code: "capture_degraded",
    });
    for (let i = 0; i < 5; i++) await later();
    const second = await reopen(out, disk.kill());
    // it is read back from memory, and every sync says that all is well
    expect(second.recovered!.log.segments[0]!.turns).toHaveLength(2);
    expect(second.recovered!.lines.lineLength(1)).toBe(released);
    second.abandon();
  });

  it("O.24 is refused, and so is every later one, where what was written before can not be synced", async () => {
    const out = tempDir();
    const disk = new FaultDisk();
    const first = await openWriter(out, { disk });
    await first.commitTurn({ open: root, turn: new Conversation("main").next() });
    const second = disk.kill({ error: "EIO", at: 1, calls: ["fdatasync"] });
    await expect(reopen(out, second)).rejects.toMatchObject({ code: "cannot_write" });
    // the device has said it once, and says it never again
    await expect(reopen(out, second.kill())).rejects.toThrow("the disk failed");
  });

  it("O.25 is refused where a file can not be read just now, and does not take it for a lost one", async () => {
    const out = tempDir();
    const first = await openWriter(out, {});
    await first.commitTurn({ open: root, turn: new Conversation("main").next() });
    first.abandon();
    for (let at = 1; ; at++) {
      const disk = new FaultDisk({ error: "EMFILE", at, calls: ["open", "read", "readdir", "fstat"] });
      const writer = await openWriter(out, { disk }).catch((error: unknown) => {
        expect(error).toMatchObject({ code: "cannot_write" });
        return null;
      });
      if (writer !== null) {
        expect(writer.recovered!.lines.lineLength(1)).toBe(9);
        writer.abandon();
      }
      if (disk.delivered === 0) break;
    }
  });

  it("O.26 gives no name again that a commit mentions, although the power took the file", async () => {
    const out = tempDir();
    const disk = new FaultDisk();
    const first = await openWriter(out, { disk });
    void first.commitTurn({ open: root, turn: new Conversation("lost").next() }).catch(() => undefined);
    const rest = disk.kill();
    fs.unlinkSync(path.join(out, "t1/segments/000001.seg"));
    const second = await reopen(out, rest);
    expect(second.nextSegment).toBe(2);
    // a turn in its place, and a crash before its commit frame
    rest.setFault({ error: "EIO", at: 4, forever: true, calls: ["writev", "open"] });
    await second.commitTurn({ open: root, turn: new Conversation("next").next() }).catch(() => undefined);
    expect(tampered(out)).toEqual([]);
  });

  it("O.27 comes at once after one that could not even write its lock", async () => {
    const out = tempDir();
    await expect(
      openWriter(out, { disk: new FaultDisk({ error: "ENOSPC", at: 1, calls: ["writev"] }) }),
    ).rejects.toThrow("ENOSPC");
    const writer = await openWriter(out);
    writer.abandon();
  });
});

describe("a seal", () => {
  it("O.28 says of a file that could not be parked what is in it", async () => {
    const { openSegmentsMax } = LIMITS;
    Object.assign(LIMITS, { openSegmentsMax: 2 });
    try {
      for (const [call, at] of [
        ["writev", 1],
        ["fdatasync", 1],
      ] as const) {
        const out = tempDir();
        const disk = new FaultDisk();
        const writer = await openWriter(out, { disk });
        for (const name of ["a", "b"]) await writer.commitTurn({ open: root, turn: new Conversation(name).next() });
        disk.setFault({ error: "EIO", at, calls: [call] });
        await expect(writer.commitTurn({ open: root, turn: new Conversation("c").next() })).rejects.toMatchObject({
          code: "capture_degraded",
        });
        const { manifest } = await writer.seal({ reason: "test" });
        expect(manifest.files.map((file) => [file.path, file.state])).toContainEqual(["segments/000001.seg", "open"]);
        expect(tampered(out)).toEqual([]);
        disk.kill().cutPower(1);
        expect(tampered(out)).toEqual([]);
      }
    } finally {
      Object.assign(LIMITS, { openSegmentsMax });
    }
  });

  it("O.29 is durable with all that it counts, also where nothing was synced before it", async () => {
    for (let seed = 1; seed <= 10; seed++) {
      const out = tempDir();
      const disk = new FaultDisk();
      const main = new Conversation("main");
      const first = await openWriter(out, { disk, durability: "write" });
      await first.commitTurn({ open: root, turn: main.next() });
      const second = await reopen(out, disk.kill(), { durability: "write" });
      await second.commitTurn({ segment: 1, turn: main.next() });
      await second.seal({ reason: "test" });
      // the device of the last process
      (second as unknown as { dir: { root: { disk: FaultDisk } } }).dir.root.disk.cutPower(seed);
      expect(verifyTrajectory(path.join(out, "t1")).status).toBe("complete");
      expectExact(out, ["main-1", "main-2"]);
    }
  });
});

describe("a writer that died inside a header", () => {
  it("O.30 leaves nothing that is called damaged, now or after the next boot", async () => {
    const out = tempDir();
    const first = await openWriter(out, {});
    await first.commitTurn({ open: root, turn: new Conversation("main").next() });
    first.abandon();
    const header = fs.readFileSync(path.join(out, "t1/segments/000001.seg")).subarray(0, 100);
    for (const [name, bytes] of [
      ["000002.seg", 0],
      ["000003.seg", 20],
      ["000004.seg", 100],
    ] as const)
      fs.writeFileSync(path.join(out, "t1/segments", name), header.subarray(0, bytes));
    expect(verifyTrajectory(path.join(out, "t1")).status).toBe("incomplete");
    const second = await openWriter(out, {});
    const { manifest } = await second.seal({ reason: "test" });
    expect(manifest.status).toBe("complete");
    expect(verifyTrajectory(path.join(out, "t1")).status).toBe("complete");
  });
});
