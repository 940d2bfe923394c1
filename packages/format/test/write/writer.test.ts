import fs from "node:fs";
import path from "node:path";
import v8 from "node:v8";
import vm from "node:vm";
import { describe, expect, it } from "vitest";
import { rebuildLines } from "../../src/read/lines.js";
import { readTrajectory, rebuildBody } from "../../src/read/read-trajectory.js";
import { turnsInCommitOrder } from "../../src/read/trajectory-log.js";
import { Conversation, concat, ids, intent, openWriter, tempDir, turn } from "../support/turns.js";

/** Node's own, without a flag on the command line. */
function collectGarbage(): void {
  v8.setFlagsFromString("--expose-gc");
  (vm.runInNewContext("gc") as () => void)();
}

describe("a trajectory that is written and read", () => {
  it("holds turns, commits, intents, deliveries and the exact prompt ids", async () => {
    const out = tempDir();
    const writer = await openWriter(out);
    const main = new Conversation("main");
    const first = main.next();
    writer.writeIntent(intent(first.call_id));
    const committed = await writer.commitTurn({ open: { parent: null }, turn: first });
    expect(committed).toMatchObject({ commit: 1, call_id: "main-1", file: "segments/000001.seg", seq: 1 });
    writer.writeDelivery({
      call_id: first.call_id,
      outcome: "delivered",
      bytes: 10,
      status: 200,
      detail: null,
      at_ms: 2,
    });
    const second = main.next();
    writer.writeIntent(intent(second.call_id));
    await writer.commitTurn({ segment: 1, turn: second });
    const branch = turn("branch-1", concat(main.line.slice(0, 9), ids(7000, 3)), ids(8000, 2), 9);
    writer.writeIntent(intent("branch-1"));
    await writer.commitTurn({ open: { parent: { segment: 1, tokens: 9 } }, turn: branch });
    const answer = await writer.seal({ reason: "test", drift: { drift: 1 } });
    expect(answer.manifest).toMatchObject({
      status: "complete",
      drift: { drift: 1 },
      counts: { calls: 3, turns: 3, sampled_tokens: 10 },
    });

    const log = readTrajectory(path.join(out, "t1"), { mode: "strict" });
    expect(log.complete).toBe(true);
    expect(log.gaps).toEqual([]);
    expect(turnsInCommitOrder(log).map((item) => item.record.call_id)).toEqual(["main-1", "main-2", "branch-1"]);
    expect(log.segments[0]!.turns[0]!.record).toEqual(first);
    expect(log.segments[0]!.turns[1]!.record).toEqual(second);
    const lines = rebuildLines(log);
    expect(lines.line(1)).toEqual(main.line);
    for (const item of lines.turns) expect(lines.statusOf(item)).toBe("exact");
    expect(lines.promptIds(log.segments[1]!.turns[0]!)).toEqual(concat(main.line.slice(0, 9), ids(7000, 3)));
    expect(Buffer.from(rebuildBody(log, "main-2")).toString()).toBe('{"call":"main-2"}');
    expect(fs.readdirSync(path.join(out, "t1")).sort()).toEqual([
      "COMPLETE",
      "journal.seg",
      "manifest.json",
      "segments",
    ]);
    expect(fs.statSync(path.join(out, "t1")).mode & 0o777).toBe(0o700);
    expect(fs.statSync(path.join(out, "t1", "journal.seg")).mode & 0o777).toBe(0o600);
  });

  it("is continued by a later boot in new files, with every old byte untouched", async () => {
    const out = tempDir();
    const writer = await openWriter(out);
    const main = new Conversation("main");
    await writer.commitTurn({ open: { parent: null }, turn: main.next() });
    writer.abandon();
    const old = fs.readFileSync(path.join(out, "t1/segments/000001.seg"));
    const oldJournal = fs.readFileSync(path.join(out, "t1/journal.seg"));

    const second = await openWriter(out);
    expect(second.recovered!.lines.line(1)).toEqual(main.line);
    const committed = await second.commitTurn({ segment: 1, turn: main.next() });
    expect(committed).toMatchObject({ commit: 2, file: "segments/000001-0002.seg" });
    expect(second.nextSegment).toBe(2);
    await second.seal({ reason: "test" });
    expect(fs.readFileSync(path.join(out, "t1/segments/000001.seg"))).toEqual(old);
    expect(fs.readFileSync(path.join(out, "t1/journal.seg"))).toEqual(oldJournal);
    const log = readTrajectory(path.join(out, "t1"), { mode: "strict" });
    expect(log.segments).toHaveLength(1);
    expect(log.segments[0]!.files[1]!.header.continues).toEqual({ segment: 1, why: "recovered" });
    expect(rebuildLines(log).line(1)).toEqual(main.line);
    expect(log.journals[1]!.header.previous_head).toEqual(log.journals[0]!.head);
  });

  it("keeps at most 64 segment files open and continues a parked segment in a new part", async () => {
    const out = tempDir();
    const writer = await openWriter(out, { durability: "write" });
    const lanes = Array.from({ length: 70 }, (_, i) => new Conversation(`lane${i}`));
    for (const lane of lanes) await writer.commitTurn({ open: { parent: null }, turn: lane.next() });
    expect(writer.segmentsOpen).toBe(64);
    await writer.commitTurn({ segment: 1, turn: lanes[0]!.next() });
    expect(writer.segmentsOpen).toBe(64);
    await writer.seal({ reason: "test" });
    const log = readTrajectory(path.join(out, "t1"), { mode: "strict" });
    expect(log.segments[0]!.files.map((file) => [file.file, file.parked !== null])).toEqual([
      ["segments/000001.seg", true],
      ["segments/000001-0002.seg", false],
    ]);
    expect(log.segments[0]!.files[1]!.header.continues).toEqual({ segment: 1, why: "parked" });
    expect(rebuildLines(log).line(1)).toEqual(lanes[0]!.line);
  });
});

describe("a writer that stays open", () => {
  it("holds nothing of the turns that it has committed: neither records nor results", async () => {
    const writer = await openWriter(tempDir(), { durability: "write" });
    const main = new Conversation("main");
    const held: WeakRef<object>[] = [];
    for (let i = 0; i < 50; i++) {
      const turn = main.next();
      const commit = await writer.commitTurn(i === 0 ? { open: { parent: null }, turn } : { segment: 1, turn });
      held.push(new WeakRef(turn), new WeakRef(commit), new WeakRef(commit.digest));
    }
    // a weak reference is strong until the task that made it ends
    await new Promise((resolve) => setImmediate(resolve));
    collectGarbage();
    // what the last turn left is still the head of its files
    expect(held.slice(0, -3).filter((ref) => ref.deref() !== undefined)).toEqual([]);
    await writer.seal({ reason: "test" });
  });
});

describe("a trajectory with one bad byte, read in salvage mode", () => {
  it("keeps every other turn exact, wherever the byte is: also in a header, also in the journal", async () => {
    const out = tempDir();
    const writer = await openWriter(out);
    const main = new Conversation("main");
    await writer.commitTurn({ open: { parent: null }, turn: main.next() });
    await writer.commitTurn({ segment: 1, turn: main.next() });
    const branch = turn("branch-1", concat(main.line.slice(0, 9), ids(7000, 3)), ids(8000, 2), 9);
    await writer.commitTurn({ open: { parent: { segment: 1, tokens: 9 } }, turn: branch });
    await writer.seal({ reason: "test" });
    const dir = path.join(out, "t1");
    const exactAfter = (name: string, at: number): string[] => {
      const file = path.join(dir, name);
      const bytes = fs.readFileSync(file);
      const bad = Buffer.from(bytes);
      bad[at] = bad[at]! ^ 4;
      fs.writeFileSync(file, bad);
      const log = readTrajectory(dir, { mode: "salvage" });
      fs.writeFileSync(file, bytes);
      expect(log.gaps.length, `${name} ${at}`).toBeGreaterThan(0);
      const lines = rebuildLines(log);
      return lines.turns.filter((item) => lines.statusOf(item) === "exact").map((item) => item.record.call_id);
    };
    expect(exactAfter("segments/000001.seg", 100)).toEqual(["main-1", "main-2", "branch-1"]);
    // the branch's own beginning is known only from its header
    expect(exactAfter("segments/000002.seg", 100)).toEqual(["main-1", "main-2"]);
    const journalBytes = fs.statSync(path.join(dir, "journal.seg")).size;
    for (let at = 0; at < journalBytes; at += 23) {
      expect(exactAfter("journal.seg", at).sort(), `byte ${at}`).toEqual(["branch-1", "main-1", "main-2"]);
    }
  });
});
