import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { execaSync } from "execa";
import { afterAll, expect, it } from "vitest";

const TITO = resolve(import.meta.dirname, "../dist/main.js");
const JOB = resolve(import.meta.dirname, "../../../fixtures/trajectories/job-1");
const dir = mkdtempSync(join(tmpdir(), "tito-recipe-"));
const recipe = join(dir, "recipe.yaml");
writeFileSync(recipe, "version: 1\nselect:\n  retry_orphan: train\n");
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const tito = (...args: string[]) =>
  execaSync(process.execPath, [TITO, ...args], { cwd: dir, reject: false, stdin: "ignore" });

it("materialize writes the same bytes for --recipe and its earlier name --policy, and other bytes without", () => {
  const bytes = [["--recipe", recipe], ["--policy", recipe], []].map((flags) => {
    expect(tito("materialize", JOB, "--out", "samples.jsonl", ...flags)).toMatchObject({ exitCode: 0 });
    return readFileSync(join(dir, "samples.jsonl"), "utf8");
  });
  expect(bytes[0]).toBe(bytes[1]);
  expect(bytes[0]).not.toBe(bytes[2]);
});

it("--print-recipe and its earlier name --print-policy print the same recipe", () => {
  const printed = ["--print-recipe", "--print-policy"].map((flag) => tito("materialize", flag, "--recipe", recipe));
  expect(printed[0]!.stdout).toContain("retry_orphan: train");
  expect(printed[0]!.stdout).toBe(printed[1]!.stdout);
});

it("stats and explain read a recipe by both names", () => {
  for (const [command, ...rest] of [
    ["stats", JOB, "--json"],
    ["explain", JOB, "--turn", "0"],
  ] as const)
    for (const flag of ["--recipe", "--policy"]) {
      const missing = tito(command, ...rest, flag, "missing.yaml");
      expect(missing.stderr).toContain("cannot read the recipe missing.yaml: it does not exist");
      expect(missing.exitCode).toBe(66);
    }
  const [named, earlier] = ["--recipe", "--policy"].map((flag) => tito("stats", JOB, "--json", flag, recipe));
  expect(named).toMatchObject({ exitCode: 0, stdout: earlier!.stdout });
});

it("both names at once are a usage error, and help shows the one", () => {
  expect(tito("materialize", "--print-recipe", "--recipe", recipe, "--policy", recipe).exitCode).toBe(64);
  const help = String(tito("materialize", "--help").stdout);
  expect(help).toContain("--recipe <file>");
  expect(help).not.toContain("--policy");
});
