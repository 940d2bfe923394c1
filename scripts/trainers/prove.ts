/** `npm run check:full trainers`: every trainer that can be installed on a CPU, its own code on recorded rows, gradient against gradient. */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { root } from "../demo/processes.js";
import { makeRows } from "./rows.js";

const install = join(root, "scripts/trainers/install.sh");
const python =
  process.env.TITO_TRAINERS_VENV === undefined
    ? execFileSync("bash", [install], { encoding: "utf8" }).trim()
    : join(process.env.TITO_TRAINERS_VENV, "bin/python");
const home = dirname(dirname(dirname(python)));
const source = (variable: string, name: string) => {
  const path = process.env[variable] ?? join(home, name);
  return existsSync(path) ? { [variable]: path } : {};
};
const dir = mkdtempSync(join(tmpdir(), "tito-trainers-"));
try {
  const run = spawnSync(python, ["-m", "pytest", "-q", "-s", "-rs", "tests", "proofs"], {
    cwd: join(root, "integrations/python"),
    stdio: "inherit",
    env: {
      ...process.env,
      PYTHONPATH: "src",
      CUDA_VISIBLE_DEVICES: "",
      TITO_TRAINER_ROWS: await makeRows(dir),
      ...source("TITO_SLIME_SOURCE", "slime"),
      ...source("TITO_PRIME_RL_SOURCE", "prime-rl"),
    },
  });
  process.exitCode = run.status ?? 1;
} finally {
  rmSync(dir, { recursive: true, force: true });
}
