/** `tito run --harness NAME -- PROMPT` does it all: sidecar, config files, the harness itself, the seal. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { startEngine } from "@tito/reference-engine";
import { findInstallation, runHarness } from "@tito/testkit";
import { expect, onTestFinished } from "vitest";
import { DONE, TASK, toolLoop } from "./scripts.js";
import { harnessTest } from "./stage.js";

const TITO = resolve(import.meta.dirname, "../../dist/main.js");

for (const harness of ["pi", "pi-new", "opencode", "mini-swe-agent", "codex", "claude-code"]) {
  harnessTest(harness, "tito run --harness does it all, and the trajectory verifies", async () => {
    const found = findInstallation(harness);
    if ("missing" in found) throw new Error(`${harness} is ${found.missing}`);
    const root = mkdtempSync(join(tmpdir(), "tito-run-harness-"));
    onTestFinished(() => rmSync(root, { recursive: true, force: true, maxRetries: 3 }));
    const script = join(root, "script.json");
    writeFileSync(script, JSON.stringify(toolLoop(harness)));
    const engine = await startEngine({ policy: `script:${script}`, testMode: true });
    onTestFinished(() => engine.close());
    const out = join(root, "out");
    const tito = (...args: string[]) =>
      runHarness({
        argv: [process.execPath, TITO, ...args],
        env: {},
        home: join(root, "home"),
        cwd: join(root, "work"),
        binDirs: found.binDirs,
        deadlineMs: 120_000,
      });
    const run = await tito(
      "run",
      "--upstream",
      engine.url,
      "--model",
      "policy",
      "--out",
      out,
      "--harness",
      found.adapter,
      "--",
      TASK,
    );
    expect(run).toMatchObject({ exitCode: 0, timedOut: false });
    expect(run.stdout + run.stderr).toContain(DONE);

    const verified = await tito("verify", out);
    expect(verified).toMatchObject({ exitCode: 0, stdout: expect.stringContaining("complete") });
    const inspected = JSON.parse((await tito("inspect", out, "--json")).stdout) as {
      turns: { lane: string }[];
      uncaptured: object;
    };
    expect(inspected.turns.filter((turn) => turn.lane === "main")).toHaveLength(3);
    expect(inspected.uncaptured).toEqual({});
  });
}
