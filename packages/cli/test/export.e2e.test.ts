/** `tito export` and `--check-for`: a user without Python, with the wrong Python, and with the package. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, describe, expect, it } from "vitest";

const root = resolve(import.meta.dirname, "../../..");
const job = join(root, "fixtures/trajectories/job-1");
const golden = join(root, "fixtures/trajectories/goldens/default.jsonl");
const dir = mkdtempSync(join(tmpdir(), "tito-export-"));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

function tito(args: readonly string[], env: Record<string, string> = {}) {
  const run = spawnSync(process.execPath, [join(root, "packages/cli/dist/main.js"), ...args], {
    encoding: "utf8",
    env: { ...process.env, ...env },
  });
  return { exitCode: run.status, stdout: run.stdout, stderr: run.stderr };
}

describe("tito materialize --check-for", () => {
  it("exits 65 before it writes, names rows and the flag that helps, and is JSON when asked", () => {
    const out = join(dir, "rows.jsonl");
    const refused = tito(["materialize", job, "--out", out, "--check-for", "trl"]);
    expect([refused.exitCode, existsSync(out)]).toEqual([65, false]);
    expect(refused.stderr).toMatch(/trl cannot express.*run job-1\/add__kT9x has 2.*--tito-prompt-mode incremental/);
    const json = tito(["materialize", job, "--out", out, "--check-for", "trl", "--json"]);
    expect(JSON.parse(json.stderr || json.stdout)).toMatchObject({ error: { code: "cannot_express" } });
    expect(tito(["materialize", job, "--out", out, "--check-for", "trainer"]).exitCode).toBe(64);
  });
});

describe("tito export", () => {
  it("says how to get the package where Python or the package is missing", () => {
    const args = ["export", golden, "--to", "tinker", "--out", join(dir, "t.jsonl")];
    for (const python of [join(dir, "no-python"), process.execPath]) {
      const run = tito([...args, "--python", python]);
      expect(run.exitCode).not.toBe(0);
      expect(run.stderr).toMatch(/pip install|bad option/);
    }
    expect(tito(args.slice(0, 2)).exitCode).toBe(64);
  });

  const python = process.env.TITO_PYTHON ?? "python3";
  const env = { PYTHONPATH: join(root, "integrations/python/src") };
  const tried = spawnSync(python, ["-c", "import numpy"], { encoding: "utf8" });
  if (tried.status !== 0) console.warn(`SKIPPED tests of the Python package: ${python} has no numpy`);

  it.skipIf(tried.status !== 0)("writes a trainer's file, counts what was left out, and refuses in one line", () => {
    const out = join(dir, "tinker.jsonl");
    const run = tito(["export", golden, "--to", "tinker", "--out", out, "--python", python, "--json"], env);
    expect(run.stderr).toBe("");
    const said = JSON.parse(run.stdout) as { samples: number; left_out: Record<string, number> };
    const lines = readFileSync(out, "utf8").trim().split("\n");
    expect(lines).toHaveLength(said.samples);
    expect(Object.values(said.left_out).some((count) => count > 0)).toBe(true);
    const { model_input, loss_fn_inputs } = JSON.parse(lines[0]!);
    expect(loss_fn_inputs.target_tokens.slice(0, -1)).toEqual(model_input.chunks[0].tokens.slice(1));

    const unpadded = tito(["export", golden, "--to", "verl", "--out", join(dir, "v"), "--python", python], env);
    expect([unpadded.exitCode, unpadded.stderr]).toEqual([64, expect.stringMatching(/--pad-token-id/)]);
    const nothing = tito(["export", join(dir, "none.jsonl"), "--to", "sft", "--out", out, "--python", python], env);
    expect([nothing.exitCode, nothing.stderr]).toEqual([64, expect.stringMatching(/no such file/)]);
  });
});
