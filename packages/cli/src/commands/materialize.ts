import { TitoError } from "@tito/format";
import type { Policy, PolicyFlags, Report, Trainer } from "@tito/materializer";
import { type Command, Option } from "commander";
import { INTERRUPTED_EXIT, interruptible } from "../interrupt.js";
import { startProgress } from "../progress.js";
import { formatCount, printable, renderTable } from "../table.js";
import { collect, type Outcome, type Register, samplingSettings, wholeNumber } from "./command.js";
import { readLaneRules } from "./lane-rules.js";
import { type RecipeFlags, recipeFile, recipeOption } from "./recipe-flags.js";

interface MaterializeFlags extends Omit<PolicyFlags, "laneRules">, RecipeFlags {
  laneRules?: string[];
  out?: string;
  format?: "jsonl" | "parquet" | "msgpack";
  rewards?: string;
  exclusions?: string;
  turnRewards?: string;
  jobs?: number;
  resume?: boolean;
  checkFor?: Trainer;
  shard?: { index: number; count: number };
  follow?: boolean;
  groupSize?: number;
  groupTimeout?: number;
  printRecipe?: boolean;
  /** The earlier name of `printRecipe`. */
  printPolicy?: boolean;
  json?: boolean;
}

/** `tito materialize`: evidence → samples. */
export const registerMaterialize: Register = (program, outcome) => {
  const command = program
    .command("materialize")
    .summary("turn trials into loss-masked samples with rewards and advantages")
    .description(
      "Reads trials (a directory with a trajectory and a result.json, reward.json or reward.txt) and writes RolloutRuns.\nThe same log can be materialized again under another recipe; see docs/recipe.md and docs/samples.md.",
    )
    .argument("[path...]", "trial, job or trajectory directories")
    .option(
      "--out <path>",
      "file, directory of shards (ends with /), or - for JSON lines on standard output; an output of that name is replaced",
    )
    .addOption(
      new Option("--format <format>", "jsonl, parquet or msgpack (default: by the suffix of --out)").choices([
        "jsonl",
        "parquet",
        "msgpack",
      ]),
    );
  recipeOption(command, "recipe (YAML) that says what trains; flags override it")
    .option("--lane-rules <file>", "rules of your own that tell side calls apart (repeatable)", collect)
    .option("--print-recipe", "print the effective recipe and stop")
    .addOption(new Option("--print-policy", "earlier name of --print-recipe").hideHelp())
    .option(
      "--rewards <file>",
      "scores of runs: rows with trial_id, run_id, trajectory_id or path (CSV, JSONL or JSON by the suffix)",
    )
    .option("--exclusions <file>", "runs that must not train: rows that name a run, with a reason")
    .option("--turn-rewards <file>", "rewards of single turns: rows that name a run, with turn (from 0) and reward")
    .option("--reward <expression>", "how scores become a reward (default: reward)")
    .option("--credit <rule>", "none, grpo, grpo-no-std, rloo or batch-baseline (default: grpo)")
    .option("--weight <rule>", "run or token (default: run)")
    .option("--group <expression>", "what runs are compared with each other (default: run.group_id)")
    .option("--split <unit>", "one sample a segment or a turn (default: segment)")
    .option("--max-seq-len <tokens>", "split longer samples at turn boundaries", wholeNumber("--max-seq-len", 2))
    .option("--max-version-age <n>", "mask turns sampled by older weights", wholeNumber("--max-version-age"))
    .option(
      "--sampling-defaults <neutral|K=V>",
      "what the engine's own settings were, where a call did not state them (K=V is repeatable)",
      samplingSettings("--sampling-defaults"),
    )
    .option(
      "--realign-max-lost-tokens <n>",
      "join a drifted segment to its parent when it loses at most n sampled tokens",
      wholeNumber("--realign-max-lost-tokens"),
    )
    .option("--pack-max-tokens <tokens>", "pack samples into rows of this length", wholeNumber("--pack-max-tokens", 2))
    .addOption(
      new Option(
        "--logprobs <type>",
        "float32 (default; values that it cannot hold are rounded and counted) or float64",
      ),
    )
    .option("--shards <n>", "files of a directory output", wholeNumber("--shards", 1))
    .option("--jobs <n>", "worker threads; the output does not depend on it (default: 1)", wholeNumber("--jobs", 1))
    .option("--resume", "with a directory: keep the shards of an earlier or killed run that would come out the same")
    .addOption(
      new Option(
        "--check-for <trainer>",
        "refuse, before anything is written, what this trainer cannot express",
      ).choices(["trl", "trl-async", "verl", "skyrl", "slime", "prime-rl", "tinker", "fireworks", "sft"]),
    );
  addFleetOptions(command)
    .option("--json", "print the manifest as JSON")
    .action((paths: string[], flags: MaterializeFlags) => runMaterialize(paths, flags, outcome));
};

/** Beyond one run over everything: a share of it, or trials that still go on. */
function addFleetOptions(command: Command): Command {
  return command
    .option(
      "--shard <i/n>",
      "share i (from 0) of n: whole groups, the same ones on every machine; n such outputs hold the rows of one run over all",
      jobShard,
    )
    .option(
      "--follow",
      "emit runs to a .jsonl file while trials go on, until Ctrl-C; a restart goes on where it stopped",
    )
    .option(
      "--group-size <n>",
      "with --follow: emit a group once n of its runs have ended (default: 1)",
      wholeNumber("--group-size", 1),
    )
    .option(
      "--group-timeout <seconds>",
      "with --follow: how long a group waits for members, and a sealed trial for its reward (default: 600)",
      wholeNumber("--group-timeout"),
    );
}

async function runMaterialize(paths: string[], flags: MaterializeFlags, outcome: Outcome): Promise<void> {
  const { loadPolicy, materialize, printPolicy } = await import("@tito/materializer");
  const overrides = { ...flags, laneRules: await readLaneRules(flags.laneRules) };
  const file = recipeFile(flags);
  const policy = file === null ? loadPolicy(null, overrides) : loadPolicy(file.text, overrides, file.name);
  if (flags.printRecipe === true || flags.printPolicy === true) {
    process.stdout.write(printPolicy(policy));
    return;
  }
  if (paths.length === 0)
    throw new TitoError("usage", "no PATH", { hint: "name trial, job or trajectory directories" });
  if (flags.out === undefined)
    throw new TitoError("usage", "--out is missing", { hint: "tito materialize trials/ --out samples.parquet" });
  if (flags.follow === true) return follow(paths, { ...flags, out: flags.out }, policy, outcome);
  if (flags.groupSize !== undefined || flags.groupTimeout !== undefined)
    throw new TitoError("usage", "--group-size and --group-timeout belong to --follow");
  const progress = startProgress("materializing");
  const { out, format, rewards, exclusions, turnRewards, jobs, resume, checkFor, shard } = flags;
  const report = await materialize({
    paths,
    out,
    format,
    policy,
    rewards,
    exclusions,
    turnRewards,
    jobs,
    resume,
    checkFor,
    shard,
    stdout: process.stdout,
    onProgress: ({ done, total }) => progress.update(done, total),
  }).finally(() => progress.finish());
  const print = out === "-" ? console.error : console.log;
  print(flags.json === true ? JSON.stringify(report.manifest) : await renderMaterialized(report));
  if (flags.json === true) for (const line of renderWarnings(unsealedWarnings(report))) console.error(line);
}

const POLL_MS = 1000;
const GROUP_TIMEOUT_SECONDS = 600;

/** Runs until Ctrl-C or SIGTERM, which is its regular end. */
async function follow(
  paths: string[],
  flags: MaterializeFlags & { out: string },
  policy: Policy,
  outcome: Outcome,
): Promise<void> {
  for (const name of ["format", "resume", "shard", "jobs", "checkFor"] as const)
    if (flags[name] !== undefined) throw new TitoError("usage", `--follow cannot be combined with ${name}`);
  const { followRuns } = await import("@tito/materializer");
  const { out, rewards, exclusions, turnRewards, groupSize, groupTimeout } = flags;
  const progress = startProgress("emitted runs");
  const { signal, release } = interruptible();
  const emitted = await followRuns({
    ...{ paths, out, policy, rewards, exclusions, turnRewards, signal },
    groupSize: groupSize ?? 1,
    groupTimeoutMs: (groupTimeout ?? GROUP_TIMEOUT_SECONDS) * 1000,
    pollMs: POLL_MS,
    onProgress: (at) => progress.update(at.emitted, null),
  }).finally(() => {
    release();
    progress.finish();
  });
  outcome.exitCode = INTERRUPTED_EXIT;
  console.error(`tito: stopped; ${out} holds ${emitted} runs, and the same command goes on there`);
}

/** Commander parser for `--shard`. */
function jobShard(text: string): { index: number; count: number } {
  const match = /^(\d{1,6})\/(\d{1,6})$/.exec(text);
  const [index, count] = [Number(match?.[1]), Number(match?.[2])];
  if (match !== null && index < count) return { index, count };
  throw new TitoError("usage", `--shard: "${text}" is not of the form I/N with I from 0 to N − 1`);
}

/** The report for people: counts, masked tokens by reason, one line a run. */
async function renderMaterialized(report: Report): Promise<string> {
  const { renderReport } = await import("@tito/materializer");
  const tables = renderReport(report).map(
    (table) => `${table.title}\n${indent(renderTable(table.columns, table.rows))}`,
  );
  const written = report.manifest.outputs.map((output) => {
    const what = output.path === "-" ? "to standard output" : output.path;
    const did = report.kept.includes(output.path) ? "kept" : "wrote";
    return `${did} ${what}: ${output.runs} runs, ${formatCount(output.bytes)} bytes`;
  });
  return [
    ...tables.map((table) => `${table}\n`),
    ...renderWarnings([...report.manifest.warnings, ...unsealedWarnings(report)]),
    ...written,
  ].join("\n");
}

function unsealedWarnings({ unsealed }: Report): string[] {
  const why = "not sealed: still being written, or its recorder was killed; what it holds so far is used";
  return unsealed.map((run) => `run ${run}: ${why}`);
}

const WARNINGS_MAX = 40;

function renderWarnings(warnings: readonly string[]): string[] {
  const lines = warnings.slice(0, WARNINGS_MAX).map((warning) => `warning: ${printable(warning)}`);
  const more = warnings.length - lines.length;
  return more > 0 ? [...lines, `and ${formatCount(more)} more warnings, all in the manifest`] : lines;
}

function indent(text: string): string {
  return text.replace(/^/gm, "  ");
}
