import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { runHarness } from "../src/harness-driver.js";

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "tito-driver-"));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const run = (script: string, more: { deadlineMs?: number; interrupt?: AbortSignal } = {}) =>
  runHarness({
    argv: ["sh", "-c", script],
    env: { GIVEN: "yes" },
    home,
    cwd: join(home, "work"),
    binDirs: [],
    deadlineMs: 30_000,
    ...more,
  });

test("the environment is what was given and nothing of ours", async () => {
  process.env.TITO_DRIVER_LEAK = "leaked";
  const { stdout, exitCode } = await run("env; test -d .git || exit 9");
  delete process.env.TITO_DRIVER_LEAK;
  expect(exitCode).toBe(0);
  expect(stdout).toContain("GIVEN=yes");
  expect(stdout).toContain(`HOME=${home}`);
  expect(stdout).not.toContain("leaked");
});

test("a deadline ends it and what it started", async () => {
  const outcome = await run("sleep 300 & sleep 300", { deadlineMs: 200 });
  expect(outcome).toMatchObject({ timedOut: true, exitCode: null, signal: "SIGKILL" });
});

test("an interrupt reaches it as SIGINT", async () => {
  const interrupt = new AbortController();
  const done = run('trap "echo stopped; exit 3" INT; echo ready > ready; while :; do sleep 0.05; done', {
    interrupt: interrupt.signal,
  });
  const { existsSync } = await import("node:fs");
  while (!existsSync(join(home, "work", "ready"))) await new Promise((resolve) => setImmediate(resolve));
  interrupt.abort();
  expect(await done).toMatchObject({ exitCode: 3, timedOut: false, stdout: expect.stringContaining("stopped") });
});

test("a command that is not there is exit code 127", async () => {
  const outcome = await runHarness({
    argv: ["no-such-harness"],
    env: {},
    home,
    cwd: join(home, "w"),
    binDirs: [],
    deadlineMs: 10_000,
  });
  expect(outcome.exitCode).toBe(127);
});
