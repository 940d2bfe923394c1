import type { ImportOptions, ImportReport } from "@tito/sidecar";
import { Option } from "commander";
import { startProgress } from "../progress.js";
import { formatCount, renderTable } from "../table.js";
import { given, keyValues, type Register, type SamplingSettings, samplingSettings } from "./command.js";

interface ImportFlags {
  out: string;
  trajectoryId?: string;
  titoPromptMode?: "full_history" | "incremental";
  skipBad?: boolean;
  assumeDelivered?: boolean;
  model?: string;
  engine?: string;
  weightVersion?: string;
  logprobsMode?: "raw" | "processed";
  sampling?: SamplingSettings;
  harness?: string;
  metadata?: Record<string, string>;
  durability?: "fsync" | "write";
  json?: boolean;
}

/** `tito import`: segments from per-call records, offline. 0 all of it · 1 something of the log is not on record · 65 a damaged line. */
export const registerImport: Register = (program, outcome) => {
  program
    .command("import")
    .summary("segments from a log of calls with their ids, offline")
    .description(
      "Reads logs with one call a line (prompt ids, sampled ids, log probabilities; also engine replies and Harbor rollout_details) and writes trajectories as if a sidecar had recorded them, by the same rules. docs/import.md lists the fields.\nExit codes: 0 everything is on record · 1 something of the log is not · 65 a damaged line, and nothing was written · 64 usage.",
    )
    .argument("<log...>", "JSON lines in the order in which the calls ended, or .json files with one record")
    .requiredOption("--out <dir>", "directory that gets <trajectory>/")
    .option("--trajectory-id <id>", "of lines that name none (default: the name of the log)")
    .addOption(
      new Option("--tito-prompt-mode <mode>", "full_history is the only one that can be imported").choices([
        "full_history",
        "incremental",
      ]),
    )
    .option("--skip-bad", "record a gap in place of a damaged line")
    .option(
      "--assume-delivered",
      "answers reached the harness where the log does not say (else their last one does not train)",
    )
    .option("--model <id>", "model, where the log does not say")
    .option("--engine <kind>", "engine, where the log does not say")
    .option("--weight-version <name>", "version of the weights, where the log does not say")
    .addOption(
      new Option("--logprobs-mode <mode>", "what the log probabilities are, where the log does not say").choices([
        "raw",
        "processed",
      ]),
    )
    .option(
      "--sampling <neutral|K=V>",
      "sampling settings that the log does not tell (K=V is repeatable)",
      samplingSettings("--sampling"),
    )
    .option("--harness <name>", "whose rules tell auxiliary calls apart")
    .option("--metadata <K=V>", "anything to keep with the trajectories (repeatable)", keyValues("--metadata"))
    .addOption(new Option("--durability <mode>", "fsync (default) or write").choices(["fsync", "write"]))
    .option("--json", "print the report as JSON")
    .action(async (logs: string[], flags: ImportFlags) => {
      const report = await runImport(logs, flags);
      const missing = report.trajectories.some((one) => one.gaps + one.uncaptured > 0);
      if (missing || report.bad.length > 0) outcome.exitCode = 1;
      console.log(flags.json === true ? JSON.stringify(report) : renderImport(report));
    });
};

async function runImport(logs: string[], flags: ImportFlags): Promise<ImportReport> {
  const { importLog } = await import("@tito/sidecar");
  const { json: _, titoPromptMode, ...rest } = flags;
  const progress = startProgress("importing trajectories");
  const options: ImportOptions = {
    logs,
    out: flags.out,
    ...given({ ...rest, promptMode: titoPromptMode }),
    onProgress: (done, total) => progress.update(done, total),
  };
  return importLog(options).finally(() => progress.finish());
}

/** Trajectories beyond this are summed up: a log can hold thousands. */
const ROWS_MAX = 50;

function renderImport(report: ImportReport): string {
  const { trajectories } = report;
  const rows = trajectories.slice(0, ROWS_MAX).map((one) => [
    one.trajectory_id,
    formatCount(one.calls),
    formatCount(one.turns),
    formatCount(one.segments),
    formatCount(one.sampled_tokens),
    one.status,
    Object.entries(one.defects)
      .map(([name, count]) => `${name} ${count}`)
      .join(", "),
  ]);
  const table = renderTable(
    [
      { title: "trajectory" },
      { title: "calls", align: "right" },
      { title: "turns", align: "right" },
      { title: "segments", align: "right" },
      { title: "sampled ids", align: "right" },
      { title: "status" },
      { title: "defects" },
    ],
    rows,
  );
  const turns = trajectories.reduce((sum, one) => sum + one.turns, 0);
  const ignored = Object.entries(report.ignored).map(([name, lines]) => `${name} (${lines})`);
  return [
    table,
    ...(trajectories.length > ROWS_MAX ? [`and ${trajectories.length - ROWS_MAX} more`] : []),
    "",
    ...report.bad.map((one) => `left out: ${one.file}:${one.line}: ${one.reason}`),
    ...report.warnings.map((warning) => `warning: ${warning}`),
    ...(ignored.length > 0 ? [`fields without meaning here: ${ignored.join(", ")}`] : []),
    `${formatCount(report.lines)} lines, ${formatCount(trajectories.length)} trajectories, ${formatCount(turns)} turns`,
  ].join("\n");
}
