/** integrations/ray with real Ray in local mode: its tests compare with one machine's rows. */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";

const folder = join(resolve(import.meta.dirname, "../.."), "integrations/ray");
const installed = join(folder, ".venv/bin/python");
const python = process.env.TITO_RAY_PYTHON ?? (existsSync(installed) ? installed : "python3");
const tried = spawnSync(python, ["-c", "import ray.data, pytest"], { encoding: "utf8" });
const missing = tried.status === 0 ? null : `${python} cannot import ray.data and pytest`;
if (missing !== null) console.warn(`SKIPPED tests of integrations/ray: ${missing}`);

describe("integrations/ray", () => {
  it.skipIf(missing !== null)("writes on Ray the rows that one machine writes", () => {
    const run = spawnSync(python, ["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"], {
      cwd: folder,
      encoding: "utf8",
      env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1", RAY_DATA_DISABLE_PROGRESS_BARS: "1" },
    });
    expect(run.status, run.stdout + run.stderr).toBe(0);
    expect(run.stdout).toMatch(/3 passed/);
  });
});
