/** What the runs against real engines have in common: the same conversations with the same seeds, through a sidecar, read back from its segments. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { type LoggedTurn, readTrajectory, rebuildLines, type VersionSpan } from "../packages/format/dist/index.js";
import { DEMO_TOOLS, SYSTEM_PROMPT } from "../packages/reference-engine/dist/index.js";

const CONVERSATIONS = 6;
const root = resolve(import.meta.dirname, "..");
export const tito = join(root, "packages/cli/dist/main.js");
export const run = promisify(execFile);

/** One recorded call. A log probability that the engine did not give is NaN. */
export interface Exact {
  prompt: number[];
  sampled: number[];
  logprobs: number[];
  versions: VersionSpan[];
  mode: string;
  stop: number | string | null;
}

interface Reply {
  choices: { message: { content: string | null; tool_calls?: { id: string }[] } }[];
}

/** A bundle of the demo policy with its certificate. */
export async function demoBundle(model: string, out: string): Promise<string> {
  await run(process.execPath, [tito, "bundle", "--from", model, "--family", "demo", "--out", out]);
  await run(process.execPath, [tito, "certify", out]);
  return out;
}

/** Where a sidecar is reached. */
export interface Reached {
  openai_base_url: string;
  api_key: string;
}

/** What a harness says to it. */
export type Talk = (to: Reached) => Promise<void>;

/** All conversations, with these sampling fields on top. */
export const conversations =
  (sampling: Sampling = {}): Talk =>
  async (to) => {
    for (let conversation = 0; conversation < CONVERSATIONS; conversation++) {
      await converse(to, { ...sampling, seed: 100 * conversation });
      await stray(to, { ...sampling, seed: 100 * conversation });
    }
  };

/** Lets a harness talk to a sidecar with these flags and reads its turns back. @throws when it does not start, or what it wrote does not verify. */
export async function record(
  out: string,
  name: string,
  flags: readonly string[],
  talk: Talk = conversations(),
): Promise<Exact[]> {
  const dir = join(out, name);
  const args = ["sidecar", "--model", "policy", "--out", dir, "--trajectory-id", name, ...flags];
  const sidecar = spawn(process.execPath, [tito, ...args], { stdio: ["ignore", "pipe", "inherit"] });
  const lines = createInterface({ input: sidecar.stdout });
  const [line] = (await Promise.race([once(lines, "line"), once(sidecar, "exit").then(() => [""])])) as [string];
  if (line === "") throw new Error(`${name}: the sidecar did not start`);
  try {
    await talk(JSON.parse(line) as Reached);
  } finally {
    sidecar.kill("SIGTERM");
    await once(sidecar, "exit");
  }
  await run(process.execPath, [tito, "verify", dir]);
  const built = rebuildLines(readTrajectory(join(dir, name), { mode: "strict" }));
  return built.turns.map((turn) => exact(turn, built.promptIds(turn)));
}

export const sameTokens = (a: Exact[], b: Exact[]): boolean =>
  a.length === b.length &&
  a.every((turn, i) => `${turn.prompt}|${turn.sampled}` === `${b[i]!.prompt}|${b[i]!.sampled}`);

/** System and user message as the demo's harness sends them. */
function opening(text: string): object[] {
  const surroundings = "Current date: 2026-11-30\nCurrent working directory: /tmp/tito-000000/00";
  return [
    { role: "system", content: `${SYSTEM_PROMPT}\n${surroundings}` },
    { role: "user", content: text },
  ];
}

type Sampling = Record<string, unknown>;

function ask({ openai_base_url, api_key }: Reached, body: object): Promise<Response> {
  return fetch(`${openai_base_url}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${api_key}` },
    body: JSON.stringify({ model: "policy", tools: DEMO_TOOLS, max_tokens: 64, ...body }),
  });
}

async function textOf(response: Response): Promise<string> {
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
  return response.text();
}

/** A conversation of the demo's shape, up to four calls: as long as the policy calls tools it gets results. */
async function converse(to: Reached, sampling: Sampling & { seed: number }): Promise<void> {
  const messages = opening(`Use calc and save the sum in answer.txt: ${37 + (sampling.seed % 7)} 58`);
  for (let turn = 0; turn < 4; turn++) {
    const seed = sampling.seed + turn;
    const reply = JSON.parse(await textOf(await ask(to, { ...sampling, messages, seed }))) as Reply;
    const { message } = reply.choices[0]!;
    const calls = message.tool_calls ?? [];
    if (calls.length === 0) return;
    messages.push(message);
    for (const call of calls) messages.push({ role: "tool", tool_call_id: call.id, content: "95" });
  }
}

/** One streamed call that the policy was never trained for: its tokens are anything but certain. */
export function streamed(to: Reached, sampling: Sampling): Promise<Response> {
  return ask(to, { ...sampling, messages: opening("What is the sea like, 3 or 4?"), stream: true });
}

async function stray(to: Reached, sampling: Sampling): Promise<void> {
  const body = await textOf(await streamed(to, sampling));
  if (!body.trimEnd().endsWith("data: [DONE]")) throw new Error(`the stream broke off: ${body.slice(-200)}`);
}

function exact(turn: LoggedTurn, prompt: Int32Array): Exact {
  const { call_id, logprobs, sampled_ids, weight_versions, logprob_mode, stop_reason } = turn.record;
  if (logprobs === null) throw new Error(`${call_id}: no log probabilities`);
  return {
    prompt: [...prompt],
    sampled: [...sampled_ids],
    logprobs: [...logprobs],
    versions: weight_versions,
    mode: logprob_mode,
    stop: stop_reason,
  };
}
