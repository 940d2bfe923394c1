/**
 * `npm run check:full [PART…]`: what takes too long for every change. Each part is a command that can be run by itself; a part that cannot run here says why.
 * Parts: fresh-seeds, outside-data, random-trees, power-cuts, crash-loop, gateway, flat-memory, steady-memory, policy, rl-loop, trainers, vllm, llamacpp.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { findSeededTests } from "./checks/seeds.js";

const root = resolve(import.meta.dirname, "..");

/** The seed that is given, or one that nobody has tried; it is printed with the part. */
function freshSeed(): string {
  return process.env.TITO_SEED ?? String(Date.now() % 1_000_000_000);
}

/** Every test that draws something, on inputs that nobody has tried yet. `TITO_SEED=N npm run check:full fresh-seeds` tries those of N again. */
function freshSeeds(): { name: string; command: readonly string[]; env: Record<string, string> } {
  const listed = execFileSync("git", ["ls-files", "-z", "packages", "scripts"], { cwd: root, encoding: "utf8" });
  const tests = listed.split("\0").filter((path) => path.endsWith(".test.ts"));
  const drawing = findSeededTests(tests.map((path) => ({ path, text: readFileSync(join(root, path), "utf8") })));
  return {
    name: "fresh-seeds",
    command: ["node_modules/.bin/vitest", "run", "--project", "unit", ...drawing],
    env: { TITO_SEED: freshSeed(), TITO_FUZZ_RUNS: "100000" },
  };
}

const PARTS: readonly { name: string; command: readonly string[]; env?: Record<string, string> }[] = [
  freshSeeds(),
  {
    name: "outside-data",
    command: [
      ...["node_modules/.bin/vitest", "run", "--project", "e2e", "--testTimeout", "3600000"],
      "packages/sidecar/test/outside-data.e2e.test.ts",
    ],
    env: { TITO_SEED: freshSeed(), TITO_FUZZ_RUNS: "5000" },
  },
  {
    name: "random-trees",
    command: ["node_modules/.bin/vitest", "run", "--project", "unit", "packages/continuity/test/random-trees.test.ts"],
    env: { TITO_TREES: "100000" },
  },
  {
    name: "power-cuts",
    command: ["node_modules/.bin/vitest", "run", "--project", "unit", "packages/testkit/test/disk-faults.test.ts"],
    env: { TITO_RUNS: "100000" },
  },
  { name: "crash-loop", command: ["node", "--import", "tsx", "scripts/crash-loop.ts", "--kills", "2000"] },
  {
    name: "gateway",
    command: ["node_modules/.bin/vitest", "run", "--project", "e2e", "packages/sidecar/test/gateway-load.e2e.test.ts"],
    env: { TITO_GATEWAY_TRAJECTORIES: "256" },
  },
  { name: "flat-memory", command: ["node", "--import", "tsx", "packages/materializer/test/fixtures/flat-memory.ts"] },
  { name: "steady-memory", command: ["node", "--import", "tsx", "scripts/bench.ts", "steady"] },
  { name: "policy", command: ["node", "--import", "tsx", "scripts/train-policy.ts", "--measure"] },
  { name: "rl-loop", command: ["node", "--import", "tsx", "scripts/check-rl.ts"] },
  { name: "trainers", command: ["node", "--import", "tsx", "scripts/trainers/prove.ts"] },
  { name: "vllm", command: ["bash", "scripts/e2e-vllm.sh"] },
  { name: "llamacpp", command: ["bash", "scripts/e2e-llamacpp.sh"] },
];

const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !PARTS.some((part) => part.name === name));
if (unknown.length > 0) {
  console.error(`no part is called ${unknown.join(", ")}; parts: ${PARTS.map((part) => part.name).join(", ")}`);
  process.exit(64);
}
const failed: string[] = [];
for (const part of PARTS.filter(({ name }) => wanted.length === 0 || wanted.includes(name))) {
  const seed = part.env?.TITO_SEED === undefined ? "" : `TITO_SEED=${part.env.TITO_SEED} `;
  console.log(`--- ${part.name}: ${seed}${part.command.join(" ")}`);
  const [program, ...args] = part.command;
  const run = spawnSync(program!, args, { cwd: root, stdio: "inherit", env: { ...process.env, ...part.env } });
  if (run.status !== 0) failed.push(part.name);
}
console.log(failed.length === 0 ? "all parts passed" : `failed: ${failed.join(", ")}`);
process.exitCode = failed.length === 0 ? 0 : 1;
