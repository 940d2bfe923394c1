/** The Python package and its proofs with PyTorch, TRL and Tinker, on rows that the product just recorded. */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { makeRows } from "../trainers/rows.js";

const root = resolve(import.meta.dirname, "../..");
const folder = join(root, "integrations/python");
const installed = join(folder, ".venv/bin/python");
const python = existsSync(installed) ? installed : "python3";
const dir = mkdtempSync(join(tmpdir(), "tito-trainers-"));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

function missing(modules: string): string | null {
  const tried = spawnSync(python, ["-c", `import ${modules}`], { encoding: "utf8" });
  if (tried.error) return `${python} cannot be started`;
  return tried.status === 0 ? null : `${python} cannot import ${modules}`;
}

function pytest(arguments_: readonly string[], env: Record<string, string> = {}): string {
  const run = spawnSync(python, ["-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", ...arguments_], {
    cwd: folder,
    encoding: "utf8",
    env: { ...process.env, PYTHONPATH: "src", CUDA_VISIBLE_DEVICES: "", PYTHONDONTWRITEBYTECODE: "1", ...env },
  });
  expect(run.status, run.stdout + run.stderr).toBe(0);
  return run.stdout;
}

describe("integrations/python", () => {
  const noTests = missing("numpy, pytest");
  if (noTests !== null) console.warn(`SKIPPED tests of the Python package: ${noTests}`);
  it.skipIf(noTests !== null)(
    "reads every format alike, refuses what a trainer cannot express, places every value",
    () => {
      expect(pytest(["tests"])).toMatch(/\d+ passed/);
    },
  );

  const noTrainers = missing("torch, transformers, trl, tinker, pytest");
  if (noTrainers !== null) console.warn(`SKIPPED proofs with trainers: ${noTrainers}`);
  it.skipIf(noTrainers !== null)(
    "PyTorch, TRL's own trainer and Tinker's data have the gradient of the rows",
    async () => {
      const rows = await makeRows(dir);
      const files = ["test_torch.py", "test_trl.py", "test_tinker.py"].map((file) => `proofs/${file}`);
      const output = pytest(files, { TITO_TRAINER_ROWS: rows });
      for (const line of output.matchAll(/^.*(PROOF .*)$/gm)) console.log(line[1]);
      expect(output).toMatch(/PROOF TRL \| gradient, grpo/);
    },
    600_000,
  );

  const noPip = missing("venv, pip");
  if (noPip !== null) console.warn(`SKIPPED installing the Python package: ${noPip}`);
  it.skipIf(noPip !== null)(
    "is built into a wheel that holds the table of trainers",
    () => {
      const out = join(dir, "wheel");
      execFileSync(python, ["-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", out, folder], {
        encoding: "utf8",
      });
      const names = execFileSync(
        python,
        ["-c", "import sys,zipfile,glob;print(zipfile.ZipFile(glob.glob(sys.argv[1]+'/*.whl')[0]).namelist())", out],
        {
          encoding: "utf8",
        },
      );
      expect(names).toContain("tito_rl/trainers.json");
      expect(names).toContain("tito_rl/py.typed");
    },
    180_000,
  );
});
