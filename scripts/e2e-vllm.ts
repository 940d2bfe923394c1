/**
 * Drives the sidecar against a running vLLM that serves the demo's weights: `node --import tsx scripts/e2e-vllm.ts URL MODEL_DIR`.
 * The same conversation with the same seeds goes through the engine source, the renderer source, and the renderer source in incremental mode. It must give the same ids each time, the engine must
 * render as the bundle does (the start-up check refuses otherwise), and vLLM must give the recorded log probabilities again.
 */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { type LoggedTurn, readTrajectory, rebuildLines } from "../packages/format/dist/index.js";
import { DEMO_TOOLS, SYSTEM_PROMPT } from "../packages/reference-engine/dist/index.js";

const TOLERANCE = 1e-3;
const CONVERSATIONS = 6;
const root = resolve(import.meta.dirname, "..");
const tito = join(root, "packages/cli/dist/main.js");
const [url, model] = process.argv.slice(2);
if (url === undefined || model === undefined) throw new Error("usage: e2e-vllm.ts URL MODEL_DIR");
const run = promisify(execFile);
const work = mkdtempSync(join(tmpdir(), "tito-e2e-vllm-"));

interface Exact {
  prompt: number[];
  sampled: number[];
  logprobs: number[];
}

interface Reply {
  choices: { message: { content: string | null; tool_calls?: { id: string }[] } }[];
}

/** System and user message as the demo's harness sends them. */
function opening(text: string): object[] {
  const surroundings = "Current date: 2026-11-30\nCurrent working directory: /tmp/tito-000000/00";
  return [
    { role: "system", content: `${SYSTEM_PROMPT}\n${surroundings}` },
    { role: "user", content: text },
  ];
}

async function ask(baseUrl: string, key: string, messages: object[], seed: number, stream: boolean): Promise<string> {
  const response = await fetch(`${baseUrl}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    body: JSON.stringify({ model: "policy", messages, tools: DEMO_TOOLS, seed, max_tokens: 64, stream }),
  });
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
  return response.text();
}

/** A conversation of the demo's shape, up to four calls: as long as the policy calls tools it gets results. */
async function converse(baseUrl: string, key: string, seed: number): Promise<void> {
  const messages = opening(`Use calc and save the sum in answer.txt: ${37 + (seed % 7)} 58`);
  for (let turn = 0; turn < 4; turn++) {
    const reply = JSON.parse(await ask(baseUrl, key, messages, seed + turn, false)) as Reply;
    const { message } = reply.choices[0]!;
    const calls = message.tool_calls ?? [];
    if (calls.length === 0) return;
    messages.push(message);
    for (const call of calls) messages.push({ role: "tool", tool_call_id: call.id, content: "95" });
  }
}

/** One streamed call that the policy was never trained for: its tokens are anything but certain. */
async function stray(baseUrl: string, key: string, seed: number): Promise<void> {
  const body = await ask(baseUrl, key, opening("What is the sea like, 3 or 4?"), seed, true);
  if (!body.trimEnd().endsWith("data: [DONE]")) throw new Error(`the stream broke off: ${body.slice(-200)}`);
}

async function record(name: string, flags: readonly string[]): Promise<Exact[]> {
  const out = join(work, name);
  const sidecar = spawn(
    process.execPath,
    [
      tito,
      "sidecar",
      "--upstream",
      url!,
      "--model",
      "policy",
      "--engine",
      "vllm",
      "--out",
      out,
      "--trajectory-id",
      name,
      ...flags,
    ],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  const lines = createInterface({ input: sidecar.stdout });
  const [line] = (await Promise.race([once(lines, "line"), once(sidecar, "exit").then(() => [""])])) as [string];
  if (line === "") throw new Error(`${name}: the sidecar did not start`);
  const endpoint = JSON.parse(line) as { openai_base_url: string; api_key: string };
  for (let conversation = 0; conversation < CONVERSATIONS; conversation++) {
    await converse(endpoint.openai_base_url, endpoint.api_key, 100 * conversation);
    await stray(endpoint.openai_base_url, endpoint.api_key, 100 * conversation);
  }
  sidecar.kill("SIGTERM");
  await once(sidecar, "exit");
  await run(process.execPath, [tito, "verify", out]);
  const log = readTrajectory(join(out, name), { mode: "strict" });
  const built = rebuildLines(log);
  return built.turns.map((turn) => exact(turn, built.promptIds(turn)));
}

function exact(turn: LoggedTurn, prompt: Int32Array): Exact {
  const { record: found } = turn;
  if (found.logprobs === null) throw new Error(`${found.call_id}: incomplete evidence`);
  return { prompt: [...prompt], sampled: [...found.sampled_ids], logprobs: [...found.logprobs] };
}

/** Log probabilities of the sampled ids as vLLM scores them in a prompt. */
async function rescored({ prompt, sampled }: Exact): Promise<number[]> {
  const ids = [...prompt, ...sampled];
  const response = await fetch(`${url}/v1/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "policy", prompt: ids, max_tokens: 1, prompt_logprobs: 0, temperature: 1 }),
  });
  const body = (await response.json()) as {
    choices: { prompt_logprobs: (Record<string, { logprob: number }> | null)[] }[];
  };
  const scores = body.choices[0]!.prompt_logprobs;
  return sampled.map((id, i) => scores[prompt.length + i]![String(id)]!.logprob);
}

const sameTokens = (a: Exact[], b: Exact[]): boolean =>
  a.length === b.length &&
  a.every((turn, i) => `${turn.prompt}|${turn.sampled}` === `${b[i]!.prompt}|${b[i]!.sampled}`);

try {
  const bundle = join(work, "bundle");
  await run(process.execPath, [tito, "bundle", "--from", model, "--family", "demo", "--out", bundle]);
  await run(process.execPath, [tito, "certify", bundle]);
  const engine = await record("engine", []);
  const renderer = await record("renderer", ["--renderer", bundle]);
  const incremental = await record("incremental", [
    "--renderer",
    bundle,
    "--tito-prompt-mode",
    "incremental",
    "--shadow-render",
    "1",
  ]);
  let worst = 0;
  let lowest = 0;
  let scored = 0;
  for (const turn of [...engine, ...renderer, ...incremental]) {
    const again = await rescored(turn);
    again.forEach((logprob, i) => {
      worst = Math.max(worst, Math.abs(logprob - turn.logprobs[i]!));
      lowest = Math.min(lowest, logprob);
    });
    scored += again.length;
  }
  const sources = sameTokens(engine, renderer);
  const modes = sameTokens(renderer, incremental);
  console.log(`calls                                   ${engine.length} + ${renderer.length} + ${incremental.length}`);
  console.log(`render probe                            equal (checked by the sidecar at start)`);
  console.log(`engine and renderer source, same ids    ${sources}`);
  console.log(`full history and incremental, same ids  ${modes}`);
  console.log(
    `log probabilities, ${scored} tokens  from ${lowest.toFixed(2)} to 0: largest difference ${worst.toExponential(2)}`,
  );
  if (!sources || !modes || !(worst <= TOLERANCE) || scored === 0) process.exitCode = 1;
} finally {
  rmSync(work, { recursive: true, force: true });
}
