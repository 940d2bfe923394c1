import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { dumpRecords } from "../src/read/dump.js";
import { rebuildLines } from "../src/read/lines.js";
import { findTrajectories, readSegment, readTrajectory } from "../src/read/read-trajectory.js";
import { verifyTrajectory } from "../src/verify/verify.js";

const root = path.resolve(import.meta.dirname, "../../../fixtures/segments");
const v1 = path.join(root, "v1");
/** Changes only together with a new format version, which gets files of its own: this line then stays. */
const SUMS_SHA256 = "bea374ee42d9f8692919776d01d447f2f6076691d9d61ca2d675b2c470e66560";

const sha256 = (file: string): string => createHash("sha256").update(fs.readFileSync(file)).digest("hex");
const listed = fs
  .readFileSync(path.join(v1, "SHA256SUMS"), "utf8")
  .trim()
  .split("\n")
  .map((line) => ({ digest: line.slice(0, 64), name: line.slice(66) }));

describe("golden files of version 1", () => {
  it("are the ones that were made when the version was fixed, and all of them", () => {
    expect(sha256(path.join(v1, "SHA256SUMS"))).toBe(SUMS_SHA256);
    for (const { digest, name } of listed) expect(sha256(path.join(v1, name)), name).toBe(digest);
    const there = fs.readdirSync(v1, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    expect(there).toHaveLength(listed.length + 1);
  });

  it.each(listed.filter(({ name }) => name.endsWith(".seg")))(
    "$name reads as its dump says, byte for byte",
    ({ name }) => {
      const file = path.join(v1, name);
      const dump = [...dumpRecords(file, "salvage"), ""].join("\n");
      expect(dump).toBe(fs.readFileSync(file.replace(/\.seg$/, ".txt"), "utf8"));
    },
  );

  it("hold two whole trajectories", () => {
    expect(findTrajectories([root])).toEqual([path.join(v1, "keyed"), path.join(v1, "trajectory")]);
    expect(verifyTrajectory(path.join(v1, "trajectory"))).toMatchObject({
      status: "complete",
      counts: { turns: 4, calls: 5 },
    });
    expect(verifyTrajectory(path.join(v1, "keyed"), { hmacKey: Buffer.alloc(32, 7) })).toMatchObject({
      status: "complete",
    });
    const log = readTrajectory(path.join(v1, "trajectory"), { mode: "strict" });
    const lines = rebuildLines(log);
    for (const turn of lines.turns) expect(lines.statusOf(turn)).toBe("exact");
    expect(lines.turns.map((turn) => turn.commit)).toEqual([1, 2, 3, 4]);
    expect(lines.messages(lines.turns[1]!)!.map((message) => message.role)).toEqual([
      "system",
      "user",
      "assistant",
      "tool",
    ]);
    expect(lines.tools(lines.turns[1]!)).toEqual([
      { name: "calc", description: "adds", parameters: '{"type": "object"}' },
    ]);
  });

  it("are read to token ids by ten lines of Python with the stock msgpack package", () => {
    const python = process.env.TITO_PYTHON ?? "python3";
    try {
      execFileSync(python, ["-c", "import msgpack"], { stdio: "ignore" });
    } catch {
      console.log(`SKIPPED: ${python} with the msgpack package is not here`);
      return;
    }
    const script = path.join(root, "read_segment.py");
    expect(fs.readFileSync(script, "utf8").trim().split("\n").length).toBeLessThanOrEqual(11);
    for (const name of ["000001", "000001-0002", "000002"]) {
      const file = path.join(v1, `trajectory/segments/${name}.seg`);
      const printed = execFileSync(python, [script, file], { encoding: "utf8" })
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as unknown);
      const expected = readSegment(file, { mode: "strict" }).turns.map(({ record }) => [
        record.call_id,
        record.prompt_keep,
        [...record.prompt_suffix],
        [...record.sampled_ids],
      ]);
      expect(printed).toEqual(expected);
    }
  });
});
