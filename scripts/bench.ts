/**
 * `npm run bench [NAME…]`: speed as ratios within one run, printed with the load of the machine, one line a run in bench/history.ndjson.
 * Each file in scripts/bench exports `run(): Promise<BenchRow[]>`; one that says `byHand` runs only when it is named. Nothing here gates: budget tests do,
 * on sizes and best-of-five ratios.
 */
import { execFileSync } from "node:child_process";
import { appendFileSync, readdirSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { basename, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

interface BenchRow {
  name: string;
  value: number;
  unit: string;
  /** What the value is a ratio to, when it is one. */
  ratioTo?: string;
}

const root = resolve(import.meta.dirname, "..");
const wanted = process.argv.slice(2);
const files = readdirSync(join(root, "scripts", "bench"))
  .filter((file) => file.endsWith(".ts"))
  .filter((file) => wanted.length === 0 || wanted.includes(basename(file, ".ts")));
if (files.length === 0) {
  console.error(`no such benchmark: ${wanted.join(", ")}`);
  process.exit(64);
}

const machine = {
  cpu: cpus()[0]?.model ?? "unknown",
  cores: cpus().length,
  node: process.version,
  load: loadavg()[0] ?? 0,
};
console.log(`${machine.cpu} · ${machine.cores} cores · Node ${machine.node} · load ${machine.load.toFixed(2)}`);
if (machine.load > 1) console.log("The machine is busy: read the ratios, not the figures.");

const results: Record<string, BenchRow[]> = {};
for (const file of files) {
  const bench = (await import(pathToFileURL(join(root, "scripts", "bench", file)).href)) as {
    run(): Promise<BenchRow[]>;
    byHand?: boolean;
  };
  if (bench.byHand === true && wanted.length === 0) continue;
  const rows = await bench.run();
  results[basename(file, ".ts")] = rows;
  for (const row of rows) {
    const ratio = row.ratioTo === undefined ? "" : `  (× ${row.ratioTo})`;
    console.log(
      `${basename(file, ".ts").padEnd(12)} ${row.name.padEnd(52)} ${row.value.toPrecision(4).padStart(10)} ${row.unit}${ratio}`,
    );
  }
}
const commit = execFileSync("git", ["rev-parse", "--short", "HEAD"], { cwd: root, encoding: "utf8" }).trim();
const line = JSON.stringify({ at: new Date().toISOString(), commit, ...machine, results });
appendFileSync(join(root, "bench", "history.ndjson"), `${line}\n`);
