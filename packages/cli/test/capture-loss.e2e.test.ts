/** Losses of ids are loud: while COMMAND runs, in the last line of `tito run`, and in `tito verify` as text and as JSON (O.105). */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { TrajectoryVerdict } from "@tito/format";
import { type RunningEngine, startEngine } from "@tito/reference-engine";
import { execa } from "execa";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const TITO = resolve(import.meta.dirname, "../dist/main.js");
/** A harness of two streamed calls with tools, against an engine that from now on loses ids behind the first `AFTER`. */
const ASK = `
const json = (body) => ({ method: "POST", headers: { "content-type": "application/json", authorization: "Bearer " + process.env.OPENAI_API_KEY }, body: JSON.stringify(body) });
const fault = { kind: "lost_ids", after: Number(process.env.AFTER) };
await fetch(process.env.ENGINE + "/test/faults", json({ fault, times: 2, on: { match: '"tools"' } }));
const tools = [{ type: "function", function: { name: "bash", parameters: { type: "object" } } }];
for (const content of ["hello", "hello again"])
  await (await fetch(process.env.OPENAI_BASE_URL + "/chat/completions", json({ model: "policy", max_tokens: 6, stream: true, tools, messages: [{ role: "user", content }] }))).text();
`;

const dir = mkdtempSync(join(tmpdir(), "tito-loss-"));
let engine: RunningEngine;
beforeAll(async () => {
  engine = await startEngine({ testMode: true });
});
afterAll(async () => {
  await engine.close();
  rmSync(dir, { recursive: true, force: true });
});

async function tito(env: Record<string, string>, ...args: string[]) {
  const run = await execa(process.execPath, [TITO, ...args], { cwd: dir, reject: false, stdin: "ignore", env });
  return { exitCode: run.exitCode, stdout: String(run.stdout), stderr: String(run.stderr) };
}

function run(id: string, after: number) {
  const flags = ["--upstream", engine.url, "--model", "policy", "--out", "out", "--trajectory-id", id];
  const command = ["--", process.execPath, "--input-type=module", "-e", ASK];
  return tito({ ENGINE: engine.url, AFTER: String(after) }, "run", ...flags, ...command);
}

describe("an engine that loses ids", () => {
  it("of some tokens is told at once, in the last line of tito run, and by tito verify (O.105)", async () => {
    const { exitCode, stderr } = await run("some", 1);
    expect(exitCode).toBe(0);
    const lines = stderr.trim().split("\n");
    const words =
      /2 of 2 turns are damaged, \d+ of \d+ sampled tokens are missing \(completion_count_disagrees 2(, logprobs_missing \d)?\)/;
    expect(lines.at(-1)).toMatch(/capture is incomplete: /);
    expect(lines.at(-1)).toMatch(words);
    expect(lines.filter((line) => line.includes('"event":"capture_loss"'))).toHaveLength(2);
    expect(lines.filter((line) => line.includes('"event":"sealed_with_loss"'))).toHaveLength(1);
    expect(lines.filter((line) => line.includes('"event":"stream_fallback"'))).toHaveLength(1);
    const text = await tito({}, "verify", "out/some");
    expect([text.exitCode, text.stdout.split(" ")[0]]).toEqual([1, "incomplete"]);
    expect(text.stdout).toMatch(words);
    const verdict = JSON.parse((await tito({}, "verify", "--json", "out/some")).stdout) as TrajectoryVerdict;
    expect(verdict.capture_loss).toMatchObject({ turns: 2, damaged_turns: 2, calls_without_ids: 0 });
    expect(verdict.capture_loss!.missing_tokens).toBeGreaterThan(0);
  });

  it("of all tokens is told in the same places (O.105)", async () => {
    const { stderr } = await run("all", 0);
    const told = stderr.trim().split("\n");
    expect(told.at(-2)).toMatch(/capture is incomplete: .*2 of 2 calls have no ids \(sampled_ids_missing 2\)/);
    expect(told.at(-1)).toMatch(/nothing was captured: 2 calls came and none got token ids/);
    const text = await tito({}, "verify", "out/all");
    expect(text.exitCode).toBe(1);
    expect(text.stdout.match(/lost_call/g)).toHaveLength(2);
    const verdict = JSON.parse((await tito({}, "verify", "--json", "out/all")).stdout) as TrajectoryVerdict;
    expect(verdict.capture_loss).toMatchObject({ turns: 0, calls_without_ids: 2, causes: { sampled_ids_missing: 2 } });
  });
});
