import fs from "node:fs";
import path from "node:path";
import {
  type CommitInput,
  readTrajectory,
  rebuildLines,
  TitoError,
  type TrajectoryLog,
  type TrajectoryWriter,
  turnsInCommitOrder,
  verifyTrajectory,
} from "@tito/format";
import { describe, expect, it } from "vitest";
import { type DiskCall, type DiskFault, FaultDisk } from "../src/fault-disk.js";
import { Conversation, concat, ids, intent, openWriter, turn } from "../src/turns.js";
import { tempDir } from "./temp-dir.js";

interface Outcome {
  /** Call ids whose commit promise resolved: what a harness may have seen complete. */
  released: string[];
  refused: string[];
  created: boolean;
  sealed: boolean;
  state: string;
}

/** A small life of a writer that makes every kind of call: open, append, branch, several in flight, seal. */
async function live(out: string, disk: FaultDisk, beforeSeal?: (writer: TrajectoryWriter) => void): Promise<Outcome> {
  const outcome: Outcome = { released: [], refused: [], created: false, sealed: false, state: "none" };
  let writer: TrajectoryWriter;
  try {
    writer = await openWriter(out, { disk });
  } catch (error) {
    expect(TitoError.is(error), String(error)).toBe(true);
    return outcome;
  }
  outcome.created = true;
  const commit = async (input: CommitInput): Promise<void> => {
    const callId = input.turn.call_id;
    try {
      await writer.commitTurn(input);
      outcome.released.push(callId);
      writer.writeDelivery({ call_id: callId, outcome: "delivered", bytes: 1, status: 200, detail: null, at_ms: 1 });
    } catch (error) {
      expect(TitoError.is(error), String(error)).toBe(true);
      outcome.refused.push(callId);
    }
  };
  const main = new Conversation("main");
  const side = new Conversation("side");
  writer.writeIntent(intent("main-1"));
  await commit({ open: { parent: null }, turn: main.next() });
  writer.writeIntent(intent("main-2"));
  writer.writeIntent(intent("side-1"));
  await Promise.all([
    commit({ segment: 1, turn: main.next() }),
    commit({ open: { segment: 2, parent: null }, turn: side.next() }),
  ]);
  const branched = turn("branch-1", concat(main.line.slice(0, 9), ids(7000, 3)), ids(8000, 2), 9);
  await Promise.all([
    commit({ segment: 2, turn: side.next() }),
    commit({ open: { segment: 3, parent: { segment: 1, tokens: 9 } }, turn: branched }),
    commit({ segment: 1, turn: main.next() }),
  ]);
  beforeSeal?.(writer);
  try {
    await writer.seal({ reason: "test" });
    outcome.sealed = true;
  } catch (error) {
    expect(TitoError.is(error), String(error)).toBe(true);
  }
  outcome.state = writer.state.kind;
  return outcome;
}

/** What was released is there, whole and exact; what is there has no hole that is not told. */
function check(out: string, outcome: Outcome, where: string): TrajectoryLog | null {
  if (!outcome.created) return null;
  const log = readTrajectory(path.join(out, "t1"), { mode: "salvage" });
  const lines = rebuildLines(log);
  const exact = turnsInCommitOrder(log).filter((item) => lines.statusOf(item) === "exact");
  const found = new Set(exact.map((item) => item.record.call_id));
  for (const callId of outcome.released)
    expect(found.has(callId), `${where}: ${callId} was released and is lost`).toBe(true);
  for (const gap of log.gaps)
    expect(["recorded", "torn_tail", "missing", "unreadable"], `${where}: ${gap.detail}`).toContain(gap.reason);
  if (outcome.refused.length > 0) {
    expect(outcome.state, where).toBe("degraded");
    if (outcome.sealed) {
      expect(log.manifest?.status, where).toBe("degraded");
      expect(log.manifest!.counts.gaps, where).toBeGreaterThanOrEqual(outcome.refused.length);
    }
  }
  if (outcome.sealed) expect(log.complete, where).toBe(true);
  else expect(outcome.state, where).toBe("degraded");
  if (log.complete) expect(log.manifest, where).not.toBeNull();
  return log;
}

/** The machine's trouble is nobody's edit: neither what it left nor what the next boot makes of it is ever called tampered. */
async function checkVerdicts(out: string, outcome: Outcome, where: string): Promise<void> {
  const dir = path.join(out, "t1");
  if (!outcome.created) return;
  expectNoTampering(dir, `${where}, as it was left`);
  if (outcome.sealed) return;
  const next = await openWriter(out, {}).catch((error: unknown) => {
    expect(TitoError.is(error), String(error)).toBe(true);
    return null;
  });
  if (next === null) return;
  await next.commitTurn({ open: { segment: next.nextSegment, parent: null }, turn: new Conversation("next").next() });
  await next.seal({ reason: "test" });
  expectNoTampering(dir, `${where}, after the next boot`);
}

function expectNoTampering(dir: string, where: string): void {
  const tampered = verifyTrajectory(dir).findings.filter((finding) => finding.severity === "tampered");
  expect(tampered, where).toEqual([]);
}

/** What can fail, and on which calls it does. */
const FAULTS: [DiskFault["error"], DiskCall[] | undefined][] = [
  ["EIO", undefined],
  ["EIO", ["fdatasync", "fsync"]],
  ["ENOSPC", ["open", "writev", "mkdir", "rename"]],
  ["EDQUOT", ["open", "writev", "fdatasync", "close"]],
  ["EMFILE", ["open"]],
  ["EAGAIN", ["writev"]],
  ["EINTR", ["writev", "fdatasync"]],
  ["short", ["writev"]],
];

describe("the N-th system call fails", () => {
  for (const [error, calls] of FAULTS) {
    for (const forever of [false, true]) {
      it(`${error}${calls === undefined ? "" : ` of ${calls.join(", ")}`}${forever ? " from then on" : " once"}, for every N until a run is clean`, async () => {
        for (let at = 1; ; at++) {
          const out = tempDir();
          const disk = new FaultDisk({ error, at, forever, ...(calls === undefined ? {} : { calls }) });
          const outcome = await live(out, disk);
          if (disk.delivered === 0) {
            expect(outcome).toMatchObject({ sealed: true, state: "ok", refused: [] });
            expect(at).toBeGreaterThan(10);
            break;
          }
          const where = `${error} at call ${at} of ${calls ?? "all"}`;
          check(out, outcome, where);
          await checkVerdicts(out, outcome, where);
          fs.rmSync(out, { recursive: true });
        }
      });
    }
  }
});

describe("the power goes", () => {
  const asked = Number(process.env.TITO_RUNS ?? 0);
  const options = { timeout: Math.max(60_000, asked * 100) };
  it("at any call: what was released is there, and what is read back is a prefix of each file", options, async () => {
    const seed = Number(process.env.TITO_SEED ?? 1);
    // every call once, then as many more as asked for, each with another choice of what the disk kept
    const whole = new FaultDisk();
    await live(tempDir(), whole);
    const runs = asked > 0 ? asked : whole.calls.length;
    console.log(`power cuts: TITO_SEED=${seed} TITO_RUNS=${runs}`);
    const parent = tempDir();
    for (let run = 0; run < runs; run++) {
      const out = fs.mkdtempSync(path.join(parent, "run-"));
      const at = 1 + (run % whole.calls.length);
      // from this call on nothing works: the process goes on as if it were dead, and nothing more is released
      const disk = new FaultDisk({ error: "EIO", at, forever: true });
      const outcome = await live(out, disk);
      disk.cutPower(seed + run);
      const where = `seed ${seed} run ${run}, power cut at call ${at} (${disk.calls[at - 1]})`;
      if (outcome.created) checkPrefix(out, outcome, where);
      await checkVerdicts(out, outcome, where);
      fs.rmSync(out, { recursive: true });
    }
  });
});

describe("a process dies, the next boot goes on, and then the power goes", () => {
  it("what the next boot released is there, with all that it builds on: also what the first had only written", async () => {
    for (let seed = 1; seed <= 40; seed++) {
      const out = tempDir();
      const disk = new FaultDisk();
      const first = await openWriter(out, { disk });
      const main = new Conversation("main");
      await first.commitTurn({ open: { parent: null }, turn: main.next() });
      void first.commitTurn({ segment: 1, turn: main.next() }).catch(() => undefined);
      const rest = disk.kill();
      fs.writeFileSync(path.join(out, "t1/writer-0001.lock"), "999999999 1\n");
      const second = await openWriter(out, { disk: rest });
      const recovered = second.recovered!.lines.lineLength(1);
      expect(recovered).toBe(main.line.length);
      const parent = { segment: 1, tokens: main.line.length };
      await second.commitTurn({ open: { segment: 2, parent }, turn: main.next() });
      rest.cutPower(seed);
      const where = `seed ${seed}`;
      checkPrefix(out, RELEASED_BY_BOTH, where);
      expectNoTampering(path.join(out, "t1"), where);
      fs.rmSync(out, { recursive: true });
    }
  });
});

/** The first turn by the first boot, the third by the second; the second turn was written, and not released. */
const RELEASED_BY_BOTH: Outcome = {
  released: ["main-1", "main-3"],
  refused: [],
  created: true,
  sealed: false,
  state: "ok",
};

function checkPrefix(out: string, outcome: Outcome, where: string): void {
  const log = readTrajectory(path.join(out, "t1"), { mode: "tail" });
  const lines = rebuildLines(log);
  const exact = turnsInCommitOrder(log).filter((item) => lines.statusOf(item) === "exact");
  const found = new Set(exact.map((item) => item.record.call_id));
  for (const callId of outcome.released)
    expect(found.has(callId), `${where}: ${callId} was released and is lost`).toBe(true);
  for (const gap of log.gaps) {
    // what was not synced may come back as zeros, or with a hole; what holds is never another record
    expect(["bad_chain", "bad_sequence"], `${where}: ${gap.detail}`).not.toContain(gap.reason);
  }
  for (const file of log.segments.flatMap((segment) => segment.files)) {
    const seqs = file.turns.map((item) => item.place.seq);
    expect(seqs, where).toEqual(file.turns.map((_, index) => index + 1));
  }
}

describe("one kind of trouble", () => {
  it("EIO on a sync is never taken for durable, and the descriptor is never synced again", async () => {
    const out = tempDir();
    const synced: number[] = [];
    const disk = new FaultDisk({ error: "EIO", at: 3, calls: ["fdatasync"] });
    const real = disk.fdatasync.bind(disk);
    const failed = new Set<number>();
    disk.fdatasync = async (fd) => {
      synced.push(fd);
      expect(failed.has(fd)).toBe(false);
      await real(fd).catch((error: unknown) => {
        failed.add(fd);
        throw error;
      });
    };
    const outcome = await live(out, disk);
    expect(failed.size).toBe(1);
    expect(outcome).toMatchObject({ state: "degraded", sealed: true });
    check(out, outcome, "EIO on the third sync");
  });

  it("a full disk is seen within one call, and the seal is still written", async () => {
    const out = tempDir();
    const disk = new FaultDisk();
    const writer = await openWriter(out, { disk });
    const main = new Conversation("main");
    await writer.commitTurn({ open: { parent: null }, turn: main.next() });
    disk.setFault({ error: "ENOSPC", at: 1, calls: ["writev"] });
    await expect(writer.commitTurn({ segment: 1, turn: main.next() })).rejects.toMatchObject({
      code: "capture_degraded",
    });
    expect(writer.state).toMatchObject({ kind: "degraded" });
    expect(fs.existsSync(path.join(out, "t1/ballast"))).toBe(false);
    await expect(writer.commitTurn({ segment: 1, turn: main.next() })).rejects.toMatchObject({
      code: "capture_degraded",
    });
    const { manifest } = await writer.seal({ reason: "test" });
    expect(manifest).toMatchObject({ status: "degraded", counts: { turns: 1, gaps: 2 } });
  });

  it.each([
    ["a segment file is removed", (dir: string) => fs.unlinkSync(path.join(dir, "segments/000001.seg"))],
    [
      "the journal is replaced",
      (dir: string) => {
        fs.renameSync(path.join(dir, "journal.seg"), path.join(dir, "old"));
        fs.copyFileSync(path.join(dir, "old"), path.join(dir, "journal.seg"));
      },
    ],
    ["a segment file is cut", (dir: string) => fs.truncateSync(path.join(dir, "segments/000001.seg"), 100)],
    [
      "a segment file gets a second name",
      (dir: string) => fs.linkSync(path.join(dir, "segments/000001.seg"), path.join(dir, "link")),
    ],
    ["the directory is moved", (dir: string) => fs.renameSync(dir, `${dir}-moved`)],
  ])("%s while it is written: degraded at the next turn", async (_what, harm) => {
    const out = tempDir();
    const writer = await openWriter(out);
    const main = new Conversation("main");
    await writer.commitTurn({ open: { parent: null }, turn: main.next() });
    harm(path.join(out, "t1"));
    await expect(writer.commitTurn({ segment: 1, turn: main.next() })).rejects.toMatchObject({
      code: "capture_degraded",
    });
    expect(writer.state.kind).toBe("degraded");
    const { manifest } = await writer.seal({ reason: "test" });
    expect(manifest.status).toBe("degraded");
  });
});
