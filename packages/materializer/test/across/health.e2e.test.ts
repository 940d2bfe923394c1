/** `tito health` against the embedded engine, on samples that it drew itself, and on copies that were corrupted. */
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { execa } from "execa";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Health } from "../../src/across/health-report.js";
import { putFile, writeTrajectory } from "../written.js";

const TITO = resolve(import.meta.dirname, "../../../cli/dist/main.js");
const RUNS = 40;
const TOKENS = 50;
const dir = mkdtempSync(join(tmpdir(), "tito-health-"));
const trials = join(dir, "trials");
const samples = join(dir, "samples.jsonl");
let engine: { url: string; stop: () => Promise<void> };

async function tito(...args: string[]) {
  const run = await execa(process.execPath, [TITO, ...args], { cwd: dir, reject: false, stdin: "ignore" });
  return { exitCode: run.exitCode, stdout: String(run.stdout), stderr: String(run.stderr) };
}

async function startEngine() {
  const child = execa(process.execPath, [TITO, "engine", "--seed", "3"], {
    buffer: false,
    reject: false,
    stdin: "ignore",
  });
  for await (const line of createInterface({ input: child.stdout! })) {
    const { url } = JSON.parse(line) as { url: string };
    const stop = async () => {
      child.kill("SIGTERM");
      await child;
    };
    return { url, stop };
  }
  throw new Error("the engine did not start");
}

async function health(file: string, ...flags: string[]) {
  const run = await tito("health", file, "--engine", engine.url, "--json", ...flags);
  expect([0, 1], run.stderr).toContain(run.exitCode);
  return { exitCode: run.exitCode, report: JSON.parse(run.stdout) as Health };
}

/** Draws from the engine; prompts are ids that it is unsure behind. */
async function draw(
  run: number,
  settings: object,
): Promise<{ prompt: number[]; sampled: number[]; logprobs: number[] }> {
  const prompt = [5, 9, 200, 44, 31].map((id, i) => id + ((run * 7 + i * 3) % 50));
  const body = { prompt, max_tokens: TOKENS, ignore_eos: true, logprobs: 0, return_token_ids: true, ...settings };
  const response = await fetch(`${engine.url}/v1/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const { choices } = (await response.json()) as {
    choices: { token_ids: number[]; logprobs: { token_logprobs: number[] } }[];
  };
  return { prompt, sampled: choices[0]!.token_ids, logprobs: choices[0]!.logprobs.token_logprobs };
}

beforeAll(async () => {
  engine = await startEngine();
  for (let run = 0; run < RUNS; run += 1) {
    // Two of them are special: one sampled at another temperature, one behind a filter.
    const special = run === 7 ? { temperature: 0.7 } : run === 8 ? { top_p: 0.9 } : {};
    const drawn = await draw(run, { temperature: 1, ...special });
    const trial = join(trials, `task__${run}`);
    putFile(join(trial, "reward.json"), { reward: run % 2 });
    const call = { ...drawn, mode: "processed" as const, sampling: special };
    await writeTrajectory(trial, {
      id: `t${run}`,
      calls: [{ ...call, versions: [{ version: `step-${run % 2}`, start: 0, end: TOKENS }] }],
    });
  }
  expect((await tito("materialize", trials, "--out", samples)).exitCode).toBe(0);
});
afterAll(async () => {
  await engine.stop();
  rmSync(dir, { recursive: true, force: true });
});

interface Row {
  samples: { tokens: number[]; loss_mask: number[]; logprobs: number[] }[];
}

/** A copy in which every 200th trained token is changed: 0.5 %. */
function corrupt(
  name: string,
  change: (sample: Row["samples"][number], token: number) => void,
): { file: string; changed: number } {
  const rows = readFileSync(samples, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Row);
  let seen = 0;
  let changed = 0;
  for (const sample of rows.flatMap((row) => row.samples)) {
    for (const [token, mask] of sample.loss_mask.entries()) {
      if (mask === 0 || seen++ % 200 !== 61) continue;
      change(sample, token);
      changed += 1;
    }
  }
  const file = join(dir, `${name}.jsonl`);
  writeFileSync(file, `${rows.map((row) => JSON.stringify(row)).join("\n")}\n`);
  const manifest = readFileSync(`${samples}.manifest.json`, "utf8").replace(
    '"path": "samples.jsonl"',
    `"path": "${name}.jsonl"`,
  );
  writeFileSync(`${file}.manifest.json`, manifest);
  return { file, changed };
}

describe("tito health", () => {
  it("finds again what the engine drew, per weight version, with nothing hidden", async () => {
    const { exitCode, report } = await health(samples);
    expect(report.problems).toEqual([]);
    expect(exitCode).toBe(0);
    expect(report.all.correlation).toBeGreaterThanOrEqual(0.9999);
    expect(report.all.max_difference).toBeLessThan(1e-4);
    expect(report.trained_of_eligible).toBe(1);
    // The turn behind top_p is counted; the one at temperature 0.7 is scored at 0.7, which this engine can.
    expect(report.not_comparable).toEqual({ turns: 1, tokens: TOKENS });
    expect(report.all.tokens).toBe((RUNS - 1) * TOKENS);
    expect(report.compared_of_trained).toBeCloseTo((RUNS - 1) / RUNS, 10);
    expect(report.versions.map(({ version, tokens }) => [version, tokens])).toEqual([
      ["step-0", (RUNS / 2 - 1) * TOKENS],
      ["step-1", (RUNS / 2) * TOKENS],
    ]);
  });

  it("O.161 catches 0.5 % of zero-filled log probabilities, which correlation alone calls healthy", async () => {
    const { file, changed } = corrupt("zeros", (sample, token) => (sample.logprobs[token] = 0));
    const { exitCode, report } = await health(file);
    expect(changed).toBe((RUNS * TOKENS) / 200);
    expect(report.all.correlation).toBeGreaterThan(0.99);
    expect(exitCode).toBe(1);
    expect(report.problems.join("\n")).toMatch(/recorded as exactly 0 where the engine is not certain/);
    expect(report.worst[0]!.recorded).toBe(0);
    const { run_id, sample, token } = report.worst[0]!;
    const explained = await tito(
      "explain",
      trials,
      "--run",
      run_id,
      "--sample",
      `${sample}`,
      "--token",
      `${token}`,
      "--json",
    );
    expect(JSON.parse(explained.stdout).logprob).toBeCloseTo(report.worst[0]!.scored, 4);
  });

  it("O.161 catches 0.5 % of token ids that were not sampled there", async () => {
    const { file } = corrupt("ids", (sample, token) => (sample.tokens[token] = (sample.tokens[token]! + 17) % 300));
    const { exitCode, report } = await health(file);
    expect(exitCode).toBe(1);
    expect(report.problems.join("\n")).toMatch(/largest difference/);
    expect(report.all.far_tokens).toBeGreaterThan(5);
  });

  it("O.161 catches logprobs that are shifted by one, and missing coverage", async () => {
    const rows = readFileSync(samples, "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Row);
    for (const sample of rows.flatMap((row) => row.samples)) sample.logprobs.unshift(sample.logprobs.pop()!);
    const file = join(dir, "shifted.jsonl");
    writeFileSync(file, `${rows.map((row) => JSON.stringify(row)).join("\n")}\n`);
    const manifest = readFileSync(`${samples}.manifest.json`, "utf8");
    writeFileSync(`${file}.manifest.json`, manifest.replace('"path": "samples.jsonl"', '"path": "shifted.jsonl"'));
    const { exitCode, report } = await health(file, "--min-coverage", "1");
    expect(exitCode).toBe(1);
    expect(report.problems.join("\n")).toMatch(/correlation .* is below/);
    expect(report.problems.join("\n")).toMatch(/mean difference/);
  });

  it("reads Parquet as it reads JSON lines", async () => {
    expect((await tito("materialize", trials, "--out", "samples.parquet")).exitCode).toBe(0);
    const [jsonl, parquet] = [await health(samples), await health(join(dir, "samples.parquet"))];
    expect(parquet.report).toEqual(jsonl.report);
  });

  it("scores a fraction of the runs, the same ones each time", async () => {
    const { report } = await health(samples, "--fraction", "0.5");
    expect(report.runs).toBeGreaterThan(5);
    expect(report.runs_left_out).toBe(RUNS - report.runs);
    expect((await health(samples, "--fraction", "0.5")).report).toEqual(report);
  });

  it("stops on Ctrl-C without a verdict and goes on where it stopped, whatever the chunks", async () => {
    const notes = join(dir, "notes.jsonl");
    const press = `import fs from "node:fs"; import { syncBuiltinESMExports } from "node:module"; let n = 0; const append = fs.appendFileSync;
      fs.appendFileSync = (...all) => { append(...all); if (++n === 5) process.kill(process.pid, "SIGINT"); }; syncBuiltinESMExports();`;
    const flags = ["--engine", engine.url, "--json", "--notes", notes, "--chunk-tokens", "60"];
    const stopped = await execa(
      process.execPath,
      ["--import", `data:text/javascript,${encodeURIComponent(press)}`, TITO, "health", samples, ...flags],
      { reject: false },
    );
    expect([stopped.exitCode, stopped.stdout], stopped.stderr).toEqual([130, ""]);
    expect(stopped.stderr).toMatch(/stopped after \d+ of 40 samples; the same command goes on here/);
    const noted = () => readFileSync(notes, "utf8").trim().split("\n").length;
    const before = noted();
    expect(before).toBeGreaterThanOrEqual(5);
    expect(before).toBeLessThan(RUNS - 1);
    const { report } = await health(samples, "--notes", notes);
    expect(noted()).toBe(RUNS - 1);
    expect(report).toEqual((await health(samples)).report);
  });

  it("says what is wrong with what it was given, and with the engine", async () => {
    const gone = await tito("health", samples, "--engine", "http://127.0.0.1:1");
    expect([gone.exitCode, gone.stderr]).toEqual([69, expect.stringMatching(/cannot be reached/)]);
    mkdirSync(join(dir, "empty"));
    expect((await tito("health", join(dir, "empty"), "--engine", engine.url)).exitCode).toBe(66);
    expect((await tito("health", samples, "--engine", engine.url, "--fraction", "2")).exitCode).toBe(64);
    copyFileSync(samples, join(dir, "alone.jsonl"));
    expect((await tito("health", join(dir, "alone.jsonl"), "--engine", engine.url)).exitCode).toBe(66);
  });
});
