/** One damaged, one locked, one open and one later trial among many: each is named, and the others come through. */
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { damageTrial, lockTrial, makeNewer, writeTrial } from "./many-trials.js";

const TITO = resolve(import.meta.dirname, "../../../cli/dist/main.js");
const TRIALS = 40;
const root = mkdtempSync(join(tmpdir(), "tito-troubled-"));
const job = join(root, "job");
const out = join(root, "out");

/** Root may read everything: then the command runs as another user. */
const asUser = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {};

async function tito(...args: string[]) {
  const run = await execa(process.execPath, [TITO, ...args], { ...asUser, reject: false, stdin: "ignore", cwd: out });
  return { exitCode: run.exitCode, stdout: String(run.stdout), stderr: String(run.stderr) };
}

beforeAll(async () => {
  chmodSync(root, 0o755);
  mkdirSync(job);
  mkdirSync(out);
  chmodSync(out, 0o777);
  for (let i = 0; i < TRIALS; i += 1) {
    const dir = await writeTrial(job, i, { unsealed: i === 14 });
    if (i === 11) damageTrial(dir, "t11");
    if (i === 12) lockTrial(dir, "t12");
    if (i === 13) makeNewer(dir, "t13");
  }
  await execa("chmod", ["-R", "go+r", job]);
  await execa("find", [job, "-type", "d", "-not", "-name", "segments", "-exec", "chmod", "go+x", "{}", "+"]);
  await execa("find", [job, "-name", "segments", "-exec", "chmod", "go+x", "{}", "+"]);
  lockTrial(join(job, "task3__0012"), "t12");
});
afterAll(() => {
  chmodSync(join(job, "task3__0012", "agent", "t12", "segments"), 0o755);
  rmSync(root, { recursive: true, force: true });
});

/** Ctrl-C after the third note. */
const PRESS = `import fs from "node:fs"; import { syncBuiltinESMExports } from "node:module"; let n = 0; const append = fs.appendFileSync;
fs.appendFileSync = (...all) => { append(...all); if (++n === 3) process.kill(process.pid, "SIGINT"); }; syncBuiltinESMExports();`;
const PRESSED = ["--import", `data:text/javascript,${encodeURIComponent(PRESS)}`];

const NAMES = ["task2__0011", "task3__0012", "task3__0013", "task3__0014"];

describe("O.160 four trials in trouble among many", () => {
  it("O.160 stats counts the others and names the four, each with its reason", async () => {
    const { exitCode, stdout, stderr } = await tito("stats", job, "--json");
    expect(stderr).toBe("");
    expect(exitCode).toBe(0);
    const stats = JSON.parse(stdout);
    expect(stats.runs).toBe(TRIALS);
    expect(stats.terminations).toEqual({ completed: TRIALS - 3, capture_incomplete: 3 });
    const named = stats.not_whole.map((one: { run_id: string; why: string }) => [one.run_id.split("/")[1], one.why]);
    expect(named.map(([name]: [string]) => name)).toEqual(NAMES);
    expect(named[0][1]).toMatch(/segments\/000001\.seg/);
    expect(named[1][1]).toMatch(/EACCES|may not read|cannot be read/);
    expect(named[2][1]).toMatch(/format version 99/);
    expect(named[3][1]).toMatch(/not sealed/);
  });

  it("O.160 materialize writes the others, names the four, and leaves three out of their groups", async () => {
    const made = await tito("materialize", job, "--out", join(out, "samples.jsonl"));
    expect([made.exitCode, made.stderr]).toEqual([0, ""]);
    for (const name of NAMES) expect(made.stdout).toMatch(new RegExp(`warning: .*${name}`));
    const runs = readFileSync(join(out, "samples.jsonl"), "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(runs).toHaveLength(TRIALS);
    const excluded = runs.filter((run) => run.excluded !== null).map((run) => run.run_id.split("/")[1]);
    expect(excluded).toEqual(NAMES.slice(0, 3));
    const whole = runs.filter((run) => run.excluded === null);
    expect(whole.every((run) => run.coverage.trained_tokens >= 7)).toBe(true);
    const verified = await tito("verify", join(out, "samples.jsonl"));
    expect(verified.exitCode).toBe(0);
  });

  it("stats stops on Ctrl-C without an output, and the same command goes on", async () => {
    const notes = join(out, "notes.jsonl");
    const stopped = await execa(process.execPath, [...PRESSED, TITO, "stats", job, "--json", "--notes", notes], {
      ...asUser,
      reject: false,
    });
    expect([stopped.exitCode, stopped.stdout], stopped.stderr).toEqual([130, ""]);
    const [, done] = /stopped after (\d+) of 40 runs; the same command goes on/.exec(stopped.stderr) ?? [];
    expect(Number(done)).toBeGreaterThanOrEqual(3);
    expect(readFileSync(notes, "utf8").trim().split("\n")).toHaveLength(Number(done));
    const { exitCode, stdout } = await tito("stats", job, "--json", "--notes", notes);
    expect(exitCode).toBe(0);
    expect(stdout).toBe((await tito("stats", job, "--json")).stdout);
  });
});
