/** `tito materialize --follow` as a process: stopped by Ctrl-C, killed, started again. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { execa } from "execa";
import { afterAll, expect, it } from "vitest";
import { writeTrial } from "../across/many-trials.js";

const TITO = resolve(import.meta.dirname, "../../../cli/dist/main.js");
const root = mkdtempSync(join(tmpdir(), "tito-follow-"));
const job = join(root, "job");
const out = join(root, "runs.jsonl");
afterAll(() => rmSync(root, { recursive: true, force: true }));

function follow() {
  const child = spawn(process.execPath, [TITO, "materialize", job, "--follow", "--out", out, "--group-size", "4"]);
  let stderr = "";
  child.stderr.on("data", (bytes) => (stderr += bytes));
  const ended = once(child, "close").then(([code, signal]) => ({ code, signal, stderr }));
  return { child, ended };
}

const lines = () =>
  existsSync(out)
    ? readFileSync(out, "utf8")
        .split("\n")
        .filter((line) => line !== "")
    : [];

async function untilLines(count: number): Promise<void> {
  while (lines().length < count) await wait(20);
}

it("O.162 emits groups as they end, through Ctrl-C and a kill, each run once", async () => {
  mkdirSync(job);
  const first = follow();
  for (let i = 0; i < 6; i += 1) await writeTrial(job, i);
  await untilLines(4);
  first.child.kill("SIGINT");
  const stopped = await first.ended;
  expect(stopped).toMatchObject({ code: 130, signal: null });
  expect(stopped.stderr).toMatch(/holds 4 runs, and the same command goes on there/);
  const second = follow();
  for (let i = 6; i < 10; i += 1) await writeTrial(job, i);
  await untilLines(8);
  second.child.kill("SIGKILL");
  expect((await second.ended).signal).toBe("SIGKILL");
  const third = follow();
  for (let i = 10; i < 12; i += 1) await writeTrial(job, i);
  await untilLines(12);
  third.child.kill("SIGTERM");
  expect((await third.ended).code).toBe(130);
  const whole = join(root, "whole.jsonl");
  await execa(process.execPath, [TITO, "materialize", job, "--out", whole]);
  expect(lines()).toEqual(readFileSync(whole, "utf8").trimEnd().split("\n"));
});

it("refuses what does not go together", async () => {
  const run = (...flags: string[]) =>
    execa(process.execPath, [TITO, "materialize", job, "--out", join(root, "x.jsonl"), ...flags], { reject: false });
  expect((await run("--follow", "--shard", "0/2")).exitCode).toBe(64);
  expect((await run("--group-size", "4")).exitCode).toBe(64);
  expect((await run("--shard", "2/2")).exitCode).toBe(64);
});
