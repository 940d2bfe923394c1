import fs from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { findTrajectories, readManifest, readTrajectory } from "../src/read/read-trajectory.js";
import { danglingCalls } from "../src/read/trajectory-log.js";
import { parseManifest } from "../src/record/manifest.js";
import { verifyTrajectory } from "../src/verify/verify.js";
import { Conversation, intent, openWriter, tempDir } from "./support/turns.js";

const lost = { call_id: "a-1", reason: "cut", status: 200, detail: "", lost_tokens: true, at_ms: 1 };

it("a directory that can not be listed stops the search, unless somebody hears of it", () => {
  const out = tempDir();
  fs.mkdirSync(path.join(out, "t1/segments"), { recursive: true });
  fs.writeFileSync(path.join(out, "t1/journal.seg"), "");
  // a file can not be listed; nor can, for most users, a directory of another one
  const paths = [path.join(out, "t1/journal.seg"), out];
  expect(() => findTrajectories(paths)).toThrow("cannot be listed");
  const errors: string[] = [];
  expect(findTrajectories(paths, (error) => errors.push(error.code))).toEqual([path.join(out, "t1")]);
  expect(errors).toEqual(["not_found"]);
});

describe("a trajectory that is written while it is verified", () => {
  async function twoMoments(): Promise<{ now: string; later: string }> {
    const out = tempDir();
    const writer = await openWriter(out);
    const main = new Conversation("main");
    await writer.commitTurn({ open: { parent: null }, turn: main.next() });
    const now = path.join(tempDir(), "t1");
    fs.cpSync(path.join(out, "t1"), now, { recursive: true });
    for (const name of ["a", "b"]) {
      const turn = new Conversation(name).next();
      await writer.commitTurn({ open: { parent: null }, turn });
      writer.writeDelivery({
        call_id: turn.call_id,
        outcome: "delivered",
        bytes: 1,
        status: 200,
        detail: null,
        at_ms: 1,
      });
    }
    await writer.seal({ reason: "test" });
    return { now, later: path.join(out, "t1") };
  }

  it("O.61 is judged as it was at one moment", async () => {
    const { now, later } = await twoMoments();
    // what is listed is the directory of now; what is read is the journal of later, whose turns are in files that were not listed
    fs.copyFileSync(path.join(now, "journal.seg"), path.join(now, "old"));
    let moved = false;
    const onProgress = (): void => {
      if (!moved) fs.cpSync(later, now, { recursive: true });
      moved = true;
    };
    const verdict = verifyTrajectory(now, { onProgress });
    expect(verdict.status).toBe("complete");
    expect(verdict.counts.turns).toBe(3);
  });

  it("O.61 is incomplete, and nothing worse, when it never stands still", async () => {
    const { now } = await twoMoments();
    const onProgress = (): void => fs.appendFileSync(path.join(now, "segments/000001.seg"), "x");
    const { status, findings } = verifyTrajectory(now, { onProgress });
    expect(status).toBe("incomplete");
    expect(findings.map((finding) => finding.message)).toEqual(["it is being written, faster than it can be read"]);
  });
});

describe("what a seal says", () => {
  it("C9.72: a run without any trace is empty, not complete", async () => {
    const out = tempDir();
    const writer = await openWriter(out);
    const { manifest } = await writer.seal({ reason: "exit" });
    expect(manifest).toMatchObject({ status: "empty", counts: { calls: 0, turns: 0 } });
    expect(verifyTrajectory(path.join(out, "t1")).status).toBe("complete");
  });

  it("a call whose end is not known, and a call whose tokens were lost, make it incomplete and are named", async () => {
    const out = tempDir();
    const writer = await openWriter(out);
    await writer.commitTurn({ open: { parent: null }, turn: new Conversation("a").next() });
    writer.writeIntent(intent("gone"));
    writer.writeJournal("uncaptured", { ...lost, call_id: "cut" });
    const { manifest } = await writer.seal({ reason: "exit" });
    expect(manifest).toMatchObject({
      status: "incomplete",
      counts: { dangling_calls: 1, lost_calls: 1, uncaptured: 1 },
    });
    expect(manifest.reasons.join("\n")).toMatch(/call cut: cut[\s\S]*call gone was asked/);
    const log = readTrajectory(path.join(out, "t1"), { mode: "strict" });
    expect(danglingCalls(log)).toEqual(["gone"]);
    const verdict = verifyTrajectory(path.join(out, "t1"));
    expect(verdict.status).toBe("incomplete");
    expect(verdict.findings.map((item) => item.code)).toEqual(["lost_call", "dangling_call", "manifest_incomplete"]);
  });

  it("a record that can not be written is a gap: the promise says why, the writer goes on, the trajectory is degraded", async () => {
    const out = tempDir();
    const writer = await openWriter(out);
    const main = new Conversation("a");
    await writer.commitTurn({ open: { parent: null }, turn: main.next() });
    const bad = { ...main.next(), sampled_ids: new Int32Array(0), logprobs: null, weight_versions: [] };
    await expect(writer.commitTurn({ segment: 1, turn: bad })).rejects.toMatchObject({ code: "format_invalid" });
    await expect(writer.commitTurn({ segment: 9, turn: main.next() })).rejects.toThrowError(/segment 9 is unknown/);
    await expect(writer.commitTurn({ segment: 1, turn: main.next() })).rejects.toThrowError(
      /keeps 27 tokens of a line of 9/,
    );
    expect(writer.state.kind).toBe("ok");
    const { manifest } = await writer.seal({ reason: "exit" });
    expect(manifest).toMatchObject({ status: "degraded", counts: { turns: 1, gaps: 3 } });
  });

  it("after it nothing is recorded, and the trajectory can not be opened again", async () => {
    const out = tempDir();
    const writer = await openWriter(out);
    await writer.seal({ reason: "exit" });
    expect(() => writer.writeIntent(intent("late"))).toThrowError(/sealed/);
    await expect(
      writer.commitTurn({ open: { parent: null }, turn: new Conversation("a").next() }),
    ).rejects.toMatchObject({ code: "trajectory_sealed" });
    await expect(openWriter(out)).rejects.toMatchObject({ code: "trajectory_sealed" });
  });

  it("counts what earlier boots left, and lists their files, also once they were forgotten", async () => {
    const out = tempDir();
    const first = await openWriter(out);
    const main = new Conversation("a");
    first.writeIntent(intent("a-1"));
    await first.commitTurn({ open: { parent: null }, turn: main.next() });
    first.abandon();
    const second = await openWriter(out);
    second.forgetRecovered();
    second.writeIntent(intent("a-2"));
    await second.commitTurn({ segment: 1, turn: main.next() });
    const { manifest } = await second.seal({ reason: "exit" });
    expect(manifest).toMatchObject({ status: "complete", counts: { calls: 2, turns: 2, sampled_tokens: 8, boots: 2 } });
    expect(manifest.files.map(({ path: file, state }) => [file, state])).toEqual([
      ["journal-0002.seg", "sealed"],
      ["journal.seg", "open"],
      ["segments/000001-0002.seg", "sealed"],
      ["segments/000001.seg", "open"],
    ]);
    expect(verifyTrajectory(path.join(out, "t1")).status).toBe("complete");
  });
});

describe("reading a manifest", () => {
  it("refuses what is not one, with the place", async () => {
    const out = tempDir();
    const writer = await openWriter(out);
    const { manifest } = await writer.seal({ reason: "exit" });
    expect(parseManifest(JSON.stringify({ ...manifest, later_key: 1 }), "m")).toMatchObject({ status: "empty" });
    for (const change of [
      { schema: "other" },
      { status: "fine" },
      { counts: { calls: -1 } },
      { files: [{}] },
      { head: null },
      { metadata: { a: 1 } },
      { reasons: [1] },
    ]) {
      expect(() => parseManifest(JSON.stringify({ ...manifest, ...change }), "dir/manifest.json")).toThrowError(
        /^dir\/manifest.json: /,
      );
    }
    expect(() => parseManifest("{", "m")).toThrowError(/not JSON/);
    expect(readManifest(out)).toBeNull();
  });
});

describe("finding trajectories", () => {
  it("at any depth, each once, and no other program's manifest", async () => {
    const out = tempDir();
    for (const place of ["jobs/a/agent", "jobs/b"])
      await (await openWriter(path.join(out, place))).seal({ reason: "exit" });
    fs.mkdirSync(path.join(out, "jobs/c"));
    fs.writeFileSync(path.join(out, "jobs/c/manifest.json"), '{"name": "an extension"}');
    fs.symlinkSync(path.join(out, "jobs"), path.join(out, "jobs/loop"));
    const expected = [path.join(out, "jobs/a/agent/t1"), path.join(out, "jobs/b/t1")];
    expect(findTrajectories([out, path.join(out, "jobs")])).toEqual(expected);
    expect(findTrajectories([expected[0]!])).toEqual([expected[0]]);
    expect(() => findTrajectories([path.join(out, "nowhere")])).toThrowError(/cannot be listed/);
  });
});
