import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { describe, expect, it, onTestFinished } from "vitest";

const MAIN = fileURLToPath(new URL("../dist/main.js", import.meta.url));

function workplace(lines: readonly unknown[]): { dir: string; log: string; out: string } {
  const dir = mkdtempSync(join(tmpdir(), "tito-import-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const log = join(dir, "calls.jsonl");
  writeFileSync(log, lines.map((line) => (typeof line === "string" ? line : JSON.stringify(line))).join("\n"));
  return { dir, log, out: join(dir, "out") };
}

const tito = (args: string[]) => execa(process.execPath, [MAIN, ...args], { reject: false });

const NEUTRAL = {
  temperature: 1,
  top_p: 1,
  top_k: -1,
  min_p: 0,
  repetition_penalty: 1,
  presence_penalty: 0,
  frequency_penalty: 0,
};

const call = (prompt: number[], sampled: number[], more: object = {}) => ({
  trajectory_id: "t1",
  prompt_token_ids: prompt,
  completion_token_ids: sampled,
  logprobs: sampled.map(() => -0.5),
  finish_reason: "stop",
  sampling: NEUTRAL,
  delivered: true,
  ...more,
});

describe("tito import", () => {
  it("makes trajectories that verify, inspect and materialize as recorded ones do", async () => {
    const { log, out, dir } = workplace([call([1, 2], [3, 4]), call([1, 2, 3, 4, 5], [6]), call([1, 2, 3, 9], [7])]);
    const imported = await tito(["import", log, "--out", out]);
    expect(imported).toMatchObject({ exitCode: 0 });
    expect(imported.stdout).toContain("3 lines, 1 trajectories, 3 turns");
    expect(await tito(["verify", out])).toMatchObject({ exitCode: 0 });
    expect((await tito(["inspect", out])).stdout).toContain("calls 3 · turns 3 · segments 2");
    const samples = join(dir, "samples.jsonl");
    expect(await tito(["materialize", out, "--out", samples])).toMatchObject({ exitCode: 0 });
    const [run] = readFileSync(samples, "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(run.coverage).toMatchObject({ captured_tokens: 4, trained_tokens: 4 });
    expect(
      run.samples.map((sample: { tokens: number[]; loss_mask: number[] }) => [sample.tokens, sample.loss_mask]),
    ).toEqual([
      [
        [1, 2, 3, 4, 5, 6],
        [0, 0, 1, 1, 0, 1],
      ],
      [
        [1, 2, 3, 9, 7],
        [0, 0, 0, 0, 1],
      ],
    ]);
  });

  it("trains no raw values under settings that nobody states, until the user does, at import or afterwards (O.90)", async () => {
    const { log, out, dir } = workplace([call([1, 2], [3, 4], { sampling: { temperature: 1, top_p: 1 } })]);
    const imported = await tito(["import", log, "--out", out]);
    expect(imported.stdout).toContain("1 calls do not state every sampling setting");
    const samples = join(dir, "samples.jsonl");
    const trained = async (paths: string, ...flags: string[]) => {
      const { exitCode, stdout } = await tito(["materialize", paths, "--out", samples, ...flags]);
      expect(exitCode).toBe(0);
      const { coverage } = JSON.parse(readFileSync(samples, "utf8"));
      return { stdout, trained: coverage.trained_tokens };
    };
    const masked = await trained(out);
    expect(masked.trained).toBe(0);
    expect(masked.stdout).toMatch(/nothing states top_k, min_p, .*--sampling-defaults/);
    expect((await trained(out, "--sampling-defaults", "neutral")).trained).toBe(2);
    expect((await trained(out, "--sampling-defaults", "top_k=-1", "--sampling-defaults", "min_p=0")).trained).toBe(0);
    const stated = join(dir, "stated");
    await tito(["import", log, "--out", stated, "--sampling", "neutral"]);
    expect((await trained(stated)).trained).toBe(2);
    for (const wrong of ["engine", "top_k", "top_k=x"])
      expect(await tito(["materialize", out, "--out", samples, "--sampling-defaults", wrong])).toMatchObject({
        exitCode: 64,
      });
  });

  it("ids that the engine counted and nobody has are told by verify, inspect and materialize, once each (O.97, O.171)", async () => {
    const usage = { prompt_tokens: 2, completion_tokens: 395 };
    const { log, out, dir } = workplace([call([1, 2], [3, 4, 5, 6, 7], { usage, engine: "vllm" })]);
    await tito(["import", log, "--out", out]);
    const verified = (await tito(["verify", out])).stdout;
    expect(verified).toMatch(/CAPTURE LOSS: .*390 of 395 sampled tokens are missing \(completion_count_disagrees 1\)/);
    expect(verified.match(/390 of 395/g)).toHaveLength(1);
    const inspected = (await tito(["inspect", out])).stdout;
    expect(inspected).toMatch(/CAPTURE LOSS {2}vllm .*: 390 of 395 sampled tokens lost their ids \(in 1 of 1 turns\)/);
    expect(inspected).toContain(
      "prompt differs from canonical replay: 0 of 1 turns · trained but not sampled: 0 tokens",
    );
    const made = await tito(["materialize", out, "--out", join(dir, "samples.jsonl")]);
    expect(made.stdout).toContain("warning: capture loss: vllm ");
    expect(made.stdout).toContain("turns whose prompt differs from canonical replay");
    const json = await tito(["materialize", out, "--out", join(dir, "samples.jsonl"), "--json"]);
    expect(JSON.parse(json.stdout).findings).toMatchObject({
      capture_loss: [{ sampled_tokens: 395, lost_tokens: 390 }],
      continuity: { prompt_differs_from_canonical_replay: 0, trained_but_not_sampled: 0 },
    });
  });

  it("a side call in unknown words is listed, and a rule file tells it apart (O.94)", async () => {
    const label = {
      messages: [
        { role: "system", content: "Name it." },
        { role: "user", content: "Fix it." },
      ],
    };
    const tools = [{ type: "function", function: { name: "read", parameters: {} } }];
    const task = {
      messages: [
        { role: "system", content: "You code." },
        { role: "user", content: "Fix it now." },
      ],
      tools,
    };
    const { log, out, dir } = workplace([call([9], [8, 7], label), call([1, 2], [3], task)]);
    await tito(["import", log, "--out", out]);
    expect((await tito(["inspect", out])).stdout).toMatch(
      /turn 0 \(main\) looks like a side call and trains 2 tokens.*tito explain .* --turn 0/,
    );
    const rules = join(dir, "rules.yaml");
    writeFileSync(rules, "harness: mine\nlanes: [{name: label, when: {system_starts: Name it}, lane: {aux: title}}]\n");
    const samples = join(dir, "samples.jsonl");
    await tito(["materialize", out, "--out", samples, "--lane-rules", rules]);
    expect(JSON.parse(readFileSync(samples, "utf8")).coverage).toMatchObject({
      trained_tokens: 1,
      masked: { auxiliary: 2 },
    });
    const explained = await tito(["explain", join(out, "t1"), "--turn", "0", "--lane-rules", rules]);
    expect(explained.stdout).toContain("lane aux:title");
    writeFileSync(rules, "harness: mine\nlanes: [{name: label, when: {}, lane: main}]\n");
    expect(await tito(["inspect", out, "--lane-rules", rules])).toMatchObject({ exitCode: 64 });
    expect(await tito(["inspect", out, "--lane-rules", join(dir, "none.yaml")])).toMatchObject({ exitCode: 66 });
  });

  it("trains nothing without log probabilities, and says why", async () => {
    const { log, out, dir } = workplace([call([1, 2], [3, 4], { logprobs: null })]);
    await tito(["import", log, "--out", out]);
    const samples = join(dir, "samples.jsonl");
    await tito(["materialize", out, "--out", samples]);
    const run = JSON.parse(readFileSync(samples, "utf8"));
    expect(run.coverage).toMatchObject({ captured_tokens: 2, trained_tokens: 0, masked: { logprob_missing: 2 } });
  });

  it("ends with 65 at a damaged line and writes nothing; with --skip-bad the gap is seen by verify", async () => {
    const { log, out, dir } = workplace([call([1, 2], [3]), '{"trajectory_id":"t1","prompt']);
    const refused = await tito(["import", log, "--out", out]);
    expect(refused).toMatchObject({ exitCode: 65, stdout: "" });
    expect(refused.stderr).toContain(`${log}:2: not JSON`);
    expect(readdirSync(dir)).toEqual(["calls.jsonl"]);
    const skipped = await tito(["import", log, "--out", out, "--skip-bad", "--json"]);
    expect(skipped).toMatchObject({ exitCode: 1 });
    expect(JSON.parse(skipped.stdout)).toMatchObject({ bad: [{ line: 2 }], trajectories: [{ turns: 1, gaps: 1 }] });
    expect(await tito(["verify", out])).toMatchObject({ exitCode: 1 });
  });

  it("refuses incremental mode with the reason, and a missing log", async () => {
    const { log, out } = workplace([call([1], [2])]);
    const incremental = await tito(["import", log, "--out", out, "--tito-prompt-mode", "incremental"]);
    expect(incremental).toMatchObject({ exitCode: 64 });
    expect(incremental.stderr).toContain("a prompt cannot be replaced after the fact");
    expect(await tito(["import", `${log}.gz`, "--out", out])).toMatchObject({ exitCode: 66 });
  });
});
