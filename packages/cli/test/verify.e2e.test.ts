import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  closeSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { TrajectoryVerdict } from "@tito/format";
import { startEngine } from "@tito/reference-engine";
import { execa } from "execa";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const TITO = resolve(import.meta.dirname, "../dist/main.js");
/** The smallest harness: one call. */
const ASK = `const r = await fetch(process.env.OPENAI_BASE_URL + "/chat/completions", { method: "POST",
  headers: { authorization: "Bearer " + process.env.OPENAI_API_KEY, "content-type": "application/json" },
  body: JSON.stringify({ model: "policy", max_tokens: 4, messages: [{ role: "user", content: "hello" }] }) });
await r.text(); process.exit(r.ok ? 0 : 1)`;

const dir = mkdtempSync(join(tmpdir(), "tito-verify-"));
const out = join(dir, "out");
const anchorFile = join(dir, "anchors.ndjson");

async function tito(...args: string[]) {
  const run = await execa(process.execPath, [TITO, ...args], { cwd: dir, reject: false, stdin: "ignore" });
  return { exitCode: run.exitCode, stdout: String(run.stdout), stderr: String(run.stderr) };
}

beforeAll(async () => {
  const engine = await startEngine({});
  const anchors = openSync(anchorFile, "a");
  try {
    for (const id of ["one", "two"]) {
      const flags = ["--upstream", engine.url, "--model", "policy", "--out", out, "--trajectory-id", id];
      const command = ["--anchor-fd", "3", "--", process.execPath, "--input-type=module", "-e", ASK];
      const child = spawn(process.execPath, [TITO, "run", ...flags, ...command], {
        stdio: ["ignore", "ignore", "inherit", anchors],
      });
      expect((await once(child, "exit"))[0]).toBe(0);
    }
  } finally {
    closeSync(anchors);
    await engine.close();
  }
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

describe("tito verify with anchors that were kept outside", () => {
  it("confirms what is as it was sealed, and sums up", async () => {
    const { exitCode, stdout } = await tito("verify", "out", "--anchor", "anchors.ndjson");
    expect(stdout.split("\n").at(-1)).toBe("2 trajectories: 2 complete");
    expect(exitCode).toBe(0);
  });

  it("gives one JSON object a trajectory, and nothing else on standard output", async () => {
    const { stdout } = await tito("verify", "out", "--json");
    const lines = stdout.split("\n").map((line) => JSON.parse(line) as { trajectory_id: string; status: string });
    expect(lines.map(({ trajectory_id, status }) => [trajectory_id, status])).toEqual([
      ["one", "complete"],
      ["two", "complete"],
    ]);
  });

  it("says which anchored trajectory was taken away as a whole", async () => {
    cpSync(join(out, "one"), join(dir, "rest", "one"), { recursive: true });
    const { exitCode, stdout, stderr } = await tito("verify", "rest", "--anchor", "anchors.ndjson");
    expect(exitCode).toBe(1);
    expect(stderr).toBe("tito: 1 anchored trajectory is not here: two");
    expect(stdout.split("\n").at(-1)).toBe("2 trajectories: 1 complete · 1 missing");
  });

  describe("O.132 where nothing is left", () => {
    const empty = join(dir, "empty");
    beforeAll(() => {
      mkdirSync(join(empty, "one"), { recursive: true });
      mkdirSync(join(dir, "traces", "one", "segments"), { recursive: true });
      writeFileSync(join(dir, "traces", "one", "unsound"), "");
    });

    it.each([
      ["the directory of all of them is gone", "gone", ["one", "two"]],
      ["the directory of all of them is empty", "empty", ["one", "two"]],
      ["a trajectory's own directory is gone", "gone/two", ["two"]],
      ["a trajectory's own directory is empty", "empty/one", ["one"]],
      ["only traces of its writer are there", "traces/one", ["one"]],
    ])("%s: exit 1, and what is anchored is named, in text and as JSON", async (_, path, ids) => {
      const text = await tito("verify", path, "--anchor", "anchors.ndjson");
      expect(text.exitCode).toBe(1);
      for (const id of ids) expect(text.stdout).toMatch(new RegExp(`^missing .*${path.split("/")[0]}.*${id} `, "m"));
      expect(text.stdout).toContain("is anchored up to record");
      expect(text.stderr).toMatch(new RegExp(`anchored traject.* here: ${ids.join(", ")}$`));
      const json = await tito("verify", path, "--anchor", "anchors.ndjson", "--json");
      expect(json.exitCode).toBe(1);
      const verdicts = json.stdout.split("\n").map((line) => JSON.parse(line) as TrajectoryVerdict);
      expect(
        verdicts.map(({ trajectory_id, status, head, findings }) => [
          trajectory_id,
          status,
          head?.trajectory,
          findings[0]!.code,
        ]),
      ).toEqual(ids.map((id) => [id, "missing", id, "trajectory_missing"]));
    });

    it("one that is gone hides no other", async () => {
      const { exitCode, stdout } = await tito("verify", "gone/two", "out/one", "--anchor", "anchors.ndjson");
      expect(stdout.split("\n").at(-1)).toBe("2 trajectories: 1 complete · 1 missing");
      expect(exitCode).toBe(1);
    });

    it("without anchors traces alone are missing, and a directory without any is a mistake", async () => {
      expect(await tito("verify", "traces/one")).toMatchObject({ exitCode: 1, stderr: "" });
      for (const path of ["gone", "empty"])
        expect(await tito("verify", path)).toMatchObject({ exitCode: 64, stdout: "" });
      writeFileSync(join(dir, "none.ndjson"), "");
      expect(await tito("verify", "gone", "--anchor", "none.ndjson")).toMatchObject({ exitCode: 64, stdout: "" });
    });
  });

  it("asks of one trajectory only what concerns it", async () => {
    expect(await tito("verify", "out/one", "--anchor", "anchors.ndjson")).toMatchObject({ exitCode: 0, stderr: "" });
  });

  it("finds a trajectory that was rolled back to before its seal", async () => {
    const copy = join(dir, "back", "one");
    cpSync(join(out, "one"), copy, { recursive: true });
    for (const name of ["COMPLETE", "manifest.json"]) rmSync(join(copy, name));
    const sealed = readFileSync(join(copy, "journal.seg"));
    // the first anchor is the turn's: what lies behind it is the delivery and the seal
    const { bytes } = JSON.parse(readFileSync(anchorFile, "utf8").split("\n")[0]!) as { bytes: number };
    writeFileSync(join(copy, "journal.seg"), sealed.subarray(0, bytes));
    const { exitCode, stdout } = await tito("verify", "back/one", "--anchor", "anchors.ndjson");
    expect(exitCode).toBe(2);
    expect(stdout).toContain("anchor_missing");
    expect((await tito("verify", "back/one")).exitCode).toBe(1);
    expect(readdirSync(copy).sort()).toEqual(["journal.seg", "segments"]);
  });
});

describe("tito verify and inspect on directories that are not as they should be", () => {
  const odd = join(dir, "odd");
  beforeAll(() => {
    for (const name of ["linked", "piped", "whole"]) cpSync(join(out, "one"), join(odd, name), { recursive: true });
    rmSync(join(odd, "linked/journal.seg"));
    symlinkSync(join(out, "one/journal.seg"), join(odd, "linked/journal.seg"));
    rmSync(join(odd, "piped/COMPLETE"));
    const makePipe = "mkfifo";
    expect(spawnSync(makePipe, [join(odd, "piped/COMPLETE")]).status).toBe(0);
  });

  it("O.60 one that can not be read hides no other: all are judged, and the exit code is the worst", async () => {
    const { exitCode, stdout } = await tito("verify", "odd");
    expect(stdout.split("\n").at(-1)).toBe("3 trajectories: 1 complete · 2 tampered");
    expect(exitCode).toBe(2);
  });

  it("O.60 inspect shows the others", async () => {
    const { exitCode, stdout, stderr } = await tito("inspect", "odd", "--json");
    const seen = stdout.split("\n").map((line) => (JSON.parse(line) as { dir: string }).dir);
    expect(seen).toEqual([join(odd, "piped"), join(odd, "whole")]);
    expect(JSON.parse(stderr)).toMatchObject({ error: { code: "format_invalid" } });
    expect(exitCode).toBe(65);
  });

  it("refuses a key that is too short and anchors that are none, before anything is read", async () => {
    writeFileSync(join(dir, "short.key"), "short\n");
    expect(await tito("verify", "out", "--hmac-key-file", "short.key")).toMatchObject({ exitCode: 64, stdout: "" });
    expect(await tito("verify", "out", "--anchor", "short.key")).toMatchObject({ exitCode: 65, stdout: "" });
  });

  it("shows the first findings of many, and says how many more there are", async () => {
    writeFileSync(join(dir, "a.key"), "a key that was never used here\n");
    const { exitCode, stdout } = await tito("verify", "out/one", "--hmac-key-file", "a.key");
    expect(exitCode).toBe(2);
    expect(stdout.split("\n").length).toBeLessThanOrEqual(22);
  });
});
