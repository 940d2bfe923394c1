/** The Python examples read the committed outputs, where Python and the libraries are there. */
import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import type { RolloutRun } from "../src/write/rollout-run.js";

const root = resolve(import.meta.dirname, "..", "..", "..");
const goldens = join(root, "fixtures", "trajectories", "goldens");
const python = process.env.TITO_PYTHON ?? "python3";

/** Null when the modules can be imported, else why not. */
function missing(modules: string): string | null {
  const tried = spawnSync(python, ["-c", `import ${modules}`], { encoding: "utf8" });
  if (tried.error) return `${python} cannot be started`;
  return tried.status === 0 ? null : `${python} has no ${modules}`;
}

function expected(): string {
  const runs = readFileSync(join(goldens, "default.jsonl"), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as RolloutRun);
  return runs
    .flatMap((run) =>
      run.samples.map((sample) => {
        const trained = sample.logprobs.filter((_, i) => sample.loss_mask[i] === 1).reduce((a, b) => a + b, 0);
        return [
          run.run_id,
          sample.sample_index,
          sample.tokens.length,
          sample.trained_tokens,
          trained.toFixed(3),
          sample.weight.toFixed(6),
        ].join(" ");
      }),
    )
    .join("\n");
}

function shown(output: string): string {
  const lines = output
    .trim()
    .split("\n")
    .map((line) => line.split(" "));
  return lines
    .map(([run, sample, tokens, mask, sum, weight]) =>
      [run, sample, tokens, mask, Number(sum).toFixed(3), Number(weight).toFixed(6)].join(" "),
    )
    .join("\n");
}

describe("Python examples", () => {
  for (const [format, modules] of [
    ["jsonl", "numpy"],
    ["msgpack", "numpy, msgpack"],
    ["parquet", "numpy, pyarrow.parquet"],
  ] as const) {
    const reason = missing(modules);
    if (reason !== null) console.warn(`SKIPPED: examples/python/read_${format}.py: ${reason}`);
    it.skipIf(reason !== null)(`read_${format}.py turns samples into arrays`, () => {
      const script = join(root, "examples", "python", `read_${format}.py`);
      const output = execFileSync(python, [script, join(goldens, `default.${format}`)], { encoding: "utf8" });
      expect(shown(output)).toBe(expected());
    });
  }

  for (const [name, modules, program] of [
    [
      "DuckDB",
      "duckdb",
      "import duckdb, sys; print(duckdb.sql(f\"select sum(len(tokens)), sum(list_sum(loss_mask)), count(distinct run_id) from '{sys.argv[1]}'\").fetchall()[0])",
    ],
    [
      "Polars",
      "polars",
      "import polars, sys; t = polars.read_parquet(sys.argv[1]); print((t['tokens'].list.len().sum(), t['loss_mask'].list.sum().sum(), t['run_id'].n_unique()))",
    ],
  ] as const) {
    const reason = missing(modules);
    if (reason !== null) console.warn(`SKIPPED: ${name} reads Parquet as it is: ${reason}`);
    it.skipIf(reason !== null)(`${name} reads Parquet as it is`, () => {
      const output = execFileSync(python, ["-c", program, join(goldens, "default.parquet")], { encoding: "utf8" });
      expect(output.trim()).toBe("(181, 60, 6)");
    });
  }
});
