/**
 * The materializer against its anchors: arrays against a memory copy and the naive way, segment files to Parquet against the Parquet writer alone.
 * Every ratio is of processor time within this run, best of several interleaved rounds.
 */
import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import {
  buildSamples,
  fillArrays,
  materialize,
  readEvidence,
  selectTurns,
} from "../../packages/materializer/dist/index.js";
import { loadPolicy } from "../../packages/materializer/dist/recipe/policy.js";
import { buildNaively, materializeNaively, type NaiveCall } from "../../packages/materializer/test/fixtures/naive.js";
import { type PlainArrays, writeParquetAlone } from "../../packages/materializer/test/fixtures/parquet-alone.js";
import { writeTrajectory } from "../../packages/materializer/test/written.js";

interface Row {
  name: string;
  value: number;
  unit: string;
  ratioTo?: string;
}

const TRIALS = 24;
const TURNS = 24;
const CONTEXT_IDS = 1600;
const SAMPLED_IDS = 480;
const ROUNDS = 5;
const FILE_ROUNDS = 8;

/** A rollout of 50,000 tokens: each prompt is the line so far and a tool result. Ids and logprobs vary as real ones do. */
function rollout(seed: number): NaiveCall[] {
  let state = seed + 1;
  const random = () => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    return state;
  };
  const calls: NaiveCall[] = [];
  const line: number[] = [];
  for (let turn = 0; turn < TURNS; turn += 1) {
    for (let i = 0; i < CONTEXT_IDS; i += 1) line.push(random() % 150_000);
    const prompt_ids = [...line];
    const sampled_ids = Array.from({ length: SAMPLED_IDS }, () => random() % 150_000);
    const logprobs = sampled_ids.map(() => -Math.fround((random() % 100_000) / 33_000));
    calls.push({ prompt_ids, sampled_ids, logprobs });
    line.push(...sampled_ids);
  }
  return calls;
}

// What one round leaves behind must not be paid for by the next.
setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** Least processor seconds of this process over some rounds: unlike the wall clock they do not depend on who else is busy. */
async function best(round: () => Promise<void> | void, rounds = ROUNDS): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < rounds; i += 1) {
    collectGarbage();
    least = Math.min(least, await processorSeconds(round));
  }
  return least;
}

async function processorSeconds(round: () => Promise<void> | void): Promise<number> {
  const start = process.cpuUsage();
  await round();
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1e6;
}

export async function run(): Promise<Row[]> {
  const dir = mkdtempSync(join(tmpdir(), "tito-bench-materialize-"));
  try {
    const logs: string[] = [];
    for (let i = 0; i < TRIALS; i += 1) {
      const calls = rollout(i);
      await writeTrajectory(join(dir, "trials"), {
        id: `t${i}`,
        calls: calls.map((call) => ({ prompt: call.prompt_ids, sampled: call.sampled_ids, logprobs: call.logprobs })),
      });
      const log = join(dir, `naive-${i}.jsonl`);
      for (const call of calls) appendFileSync(log, `${JSON.stringify(call)}\n`);
      logs.push(log);
    }
    return [...(await benchArrays(dir)), ...(await benchFiles(dir, logs))];
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Arrays of samples from evidence in memory. */
async function benchArrays(dir: string): Promise<Row[]> {
  const policy = loadPolicy(null);
  const evidence = readEvidence(join(dir, "trials", "t0"), "t0");
  const verdicts = selectTurns(evidence, { policy: policy.select, newestVersion: null });
  const samples = buildSamples(evidence, verdicts, policy.build).samples;
  const tokens = samples.reduce((sum, sample) => sum + sample.length, 0);
  const arrays = samples.map((sample) => fillArrays(sample, false));
  const calls = rollout(0);
  const text = calls.map((call) => JSON.stringify(call));
  const repeat = 40;
  let sink = 0;
  const ours = await best(() => {
    for (let i = 0; i < repeat; i += 1)
      for (const sample of samples) sink += fillArrays(sample, false).loss_mask.length;
  });
  const copy = await best(() => {
    for (let i = 0; i < repeat; i += 1) {
      for (const each of arrays)
        sink += each.tokens.slice().length + each.logprobs.slice().length + each.loss_mask.slice().length;
    }
  });
  const naive = await best(() => {
    sink += buildNaively(text.map((line) => JSON.parse(line) as NaiveCall)).tokens.length;
  }, 2);
  if (sink === 0) throw new Error("nothing was made");
  const rate = (tokens * repeat) / ours;
  return [
    { name: "arrays of a sample", value: rate / 1e6, unit: "M tokens/CPU s" },
    { name: "arrays of a sample", value: copy / ours, unit: "ratio", ratioTo: "typed array copy" },
    { name: "arrays of a sample", value: rate / (tokens / naive), unit: "ratio", ratioTo: "naive JSON" },
  ];
}

/** Segment files on disk to a Parquet file on disk. */
async function benchFiles(dir: string, logs: readonly string[]): Promise<Row[]> {
  const out = join(dir, "out.parquet");
  const bytes = TRIALS * TURNS * (CONTEXT_IDS + SAMPLED_IDS) * 9;
  const made: PlainArrays[] = [];
  for (let i = 0; i < TRIALS; i += 1) made.push(arraysOf(join(dir, "trials", `t${i}`)));
  let [ours, alone] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  // Seconds long: two rounds are enough, and before the others, for whom they would leave much to collect.
  const naive = await best(() => materializeNaively(logs, join(dir, "naive.parquet")), 2);
  collectGarbage();
  // Collecting is left to the engine here: a forced collection between rounds also drops the code that was compiled for records
  // of which none is left, and each round would compile it anew. Each side runs twice in turn, so that what the other left is paid once.
  for (let round = 0; round < FILE_ROUNDS; round += 1) {
    for (let i = 0; i < 2; i += 1) {
      ours = Math.min(
        ours,
        await processorSeconds(async () => void (await materialize({ paths: [join(dir, "trials")], out }))),
      );
    }
    for (let i = 0; i < 2; i += 1)
      alone = Math.min(alone, await processorSeconds(() => writeParquetAlone(join(dir, "alone.parquet"), made)));
  }
  return [
    { name: "segment files to Parquet", value: bytes / ours / 1e6, unit: "MB of arrays/CPU s" },
    { name: "segment files to Parquet", value: alone / ours, unit: "ratio", ratioTo: "Parquet writer alone" },
    { name: "segment files to Parquet", value: naive / ours, unit: "ratio", ratioTo: "naive JSON to Parquet" },
  ];
}

function arraysOf(path: string): PlainArrays {
  const policy = loadPolicy(null);
  const evidence = readEvidence(path, path);
  const verdicts = selectTurns(evidence, { policy: policy.select, newestVersion: null });
  const { tokens, logprobs, loss_mask } = fillArrays(buildSamples(evidence, verdicts, policy.build).samples[0]!, false);
  return { tokens, loss_mask, logprobs: Float32Array.from(logprobs) };
}
