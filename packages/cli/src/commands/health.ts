import { readFileSync } from "node:fs";
import { TitoError } from "@tito/format";
import type { Health } from "@tito/materializer";
import { INTERRUPTED_EXIT, interruptible } from "../interrupt.js";
import { startProgress } from "../progress.js";
import { renderTable } from "../table.js";
import { type Register, wholeNumber } from "./command.js";

interface HealthFlags {
  engine: string;
  model?: string;
  engineKeyFile?: string;
  fraction: number;
  chunkTokens: number;
  notes?: string;
  minCorrelation?: number;
  maxMeanDifference?: number;
  maxDifference?: number;
  minCoverage?: number;
  json?: boolean;
}

const UNHEALTHY_EXIT = 1;

/** `tito health`: is what was recorded what the engine computes? */
export const registerHealth: Register = (program, outcome) => {
  program
    .command("health")
    .summary("score trained tokens again with an engine and compare: 0 healthy · 1 under a threshold")
    .description(
      "Has an engine with vLLM's prompt_logprobs compute the log probabilities of trained tokens again, and reports their correlation, the mean and largest difference and the coverage, per weight version, with the worst tokens.\nThe engine must serve the weights that sampled. Turns that were sampled with filters, penalties or, unless the engine can score at one, another temperature are not comparable and counted; see docs/across.md.\nExit codes: 0 healthy · 1 a threshold is broken · 64 usage · 69 the engine fails · 130 stopped by Ctrl-C.",
    )
    .argument("<samples...>", "outputs of materialize: files or directories of shards")
    .requiredOption("--engine <url>", "engine that serves the weights")
    .option("--model <id>", "model to ask for (default: the engine's first)")
    .option("--engine-key-file <file>", "file with the engine's key")
    .option("--fraction <share>", "score this share of the runs, chosen by their ids", number("--fraction", 0, 1), 1)
    .option(
      "--chunk-tokens <tokens>",
      "samples up to this many tokens go into one request; a longer one goes alone",
      wholeNumber("--chunk-tokens", 1),
      16_384,
    )
    .option("--notes <file>", "note scored samples here; after a Ctrl-C the same command goes on where it stopped")
    .option("--min-correlation <r>", "default 0.999", number("--min-correlation", -1, 1))
    .option("--max-mean-difference <d>", "default 0.02", number("--max-mean-difference", 0))
    .option("--max-difference <d>", "default 1", number("--max-difference", 0))
    .option("--min-coverage <share>", "trained of eligible tokens, default 0.99", number("--min-coverage", 0, 1))
    .option("--json", "one JSON object (tito.health/v1)")
    .action(async (paths: string[], flags: HealthFlags) => {
      const { judgeHealth, measureHealth } = await import("@tito/materializer");
      const { engine: url, model, engineKeyFile, fraction, chunkTokens, notes } = flags;
      const key = engineKeyFile === undefined ? null : readFileSync(engineKeyFile, "utf8").trim();
      const progress = startProgress("scoring samples");
      const { signal, release } = interruptible();
      const { measured, done, total } = await measureHealth({
        ...{ paths, fraction, chunkTokens, notes, signal },
        engine: { url, model: model ?? null, key },
        onProgress: (at) => progress.update(at.done, at.total),
      }).finally(() => {
        release();
        progress.finish();
      });
      if (measured === null) {
        outcome.exitCode = INTERRUPTED_EXIT;
        const how =
          notes === undefined ? "with --notes FILE the next one could go on here" : "the same command goes on here";
        console.error(`tito: stopped after ${done} of ${total} samples; ${how}`);
        return;
      }
      const health = judgeHealth(measured, await thresholds(flags));
      if (!health.healthy) outcome.exitCode = UNHEALTHY_EXIT;
      console.log(flags.json === true ? JSON.stringify(health) : await render(health));
    });
};

async function thresholds(flags: HealthFlags) {
  const { DEFAULT_THRESHOLDS } = await import("@tito/materializer");
  return {
    min_correlation: flags.minCorrelation ?? DEFAULT_THRESHOLDS.min_correlation,
    max_mean_difference: flags.maxMeanDifference ?? DEFAULT_THRESHOLDS.max_mean_difference,
    max_difference: flags.maxDifference ?? DEFAULT_THRESHOLDS.max_difference,
    min_coverage: flags.minCoverage ?? DEFAULT_THRESHOLDS.min_coverage,
  };
}

async function render(health: Health): Promise<string> {
  const { renderHealth } = await import("@tito/materializer");
  const tables = renderHealth(health).map(
    ({ title, columns, rows }) => `${title}\n${renderTable(columns, rows).replace(/^/gm, "  ")}\n`,
  );
  const refused = health.refused.why.map((why) => `the engine refused: ${why}`);
  const verdict = health.healthy ? ["healthy"] : health.problems.map((problem) => `NOT HEALTHY  ${problem}`);
  return [...tables, ...refused, ...verdict].join("\n");
}

/** Commander parser for numbers in a range. */
function number(flag: string, min: number, max = Number.POSITIVE_INFINITY): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() !== "" && value >= min && value <= max) return value;
    const range = max === Number.POSITIVE_INFINITY ? `at least ${min}` : `from ${min} to ${max}`;
    throw new TitoError("usage", `${flag}: "${text}" is not a number ${range}`);
  };
}
