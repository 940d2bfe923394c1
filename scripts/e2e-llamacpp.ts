/**
 * Drives the sidecar against a running llama-server that serves the demo's weights: `node --import tsx scripts/e2e-llamacpp.ts URL MODEL_DIR`.
 * The same conversation with the same seeds goes through the renderer source in both prompt modes. The engine must render as the bundle does (the start-up check refuses otherwise), both modes must
 * give the same ids, and the recorded log probabilities must come again: from llama.cpp, and from the embedded engine, which computes the same weights by itself.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startEngine } from "../packages/reference-engine/dist/index.js";
import { conversations, demoBundle, type Exact, record, sameTokens } from "./e2e-conversation.js";

const TOLERANCE = 1e-3;
const VOCABULARY = 376;
const WARM = 1.3;
const STOP = "e";
const [url, model] = process.argv.slice(2);
if (url === undefined || model === undefined) throw new Error("usage: e2e-llamacpp.ts URL MODEL_DIR");
const work = mkdtempSync(join(tmpdir(), "tito-e2e-llamacpp-"));

type Score = (turn: Exact) => Promise<number[]>;

/** llama-server scores no prompts: it is asked for the whole distribution behind each prefix. */
const byLlamacpp: Score = async ({ prompt, sampled }) => {
  const scores: number[] = [];
  for (const [i, id] of sampled.entries()) {
    const body = {
      prompt: [...prompt, ...sampled.slice(0, i)],
      n_predict: 1,
      n_probs: VOCABULARY,
      temperature: 1,
      samplers: ["temperature"],
    };
    const reply = (await post(`${url}/completion`, body)) as {
      completion_probabilities: { id: number; logprob: number; top_logprobs: { id: number; logprob: number }[] }[];
    };
    const [first] = reply.completion_probabilities;
    if (first === undefined) throw new Error("llama-server gives no distribution where half a character would come");
    scores.push(first.top_logprobs.find((one) => one.id === id)!.logprob);
  }
  return scores;
};

const byEmbedded =
  (engine: { url: string }, temperature: number): Score =>
  async ({ prompt, sampled }) => {
    const body = {
      model: "policy",
      prompt: [...prompt, ...sampled],
      max_tokens: 1,
      prompt_logprobs: 0,
      prompt_logprobs_temperature: temperature,
    };
    const reply = (await post(`${engine.url}/v1/completions`, body)) as {
      choices: { prompt_logprobs: (Record<string, { logprob: number }> | null)[] }[];
    };
    const scores = reply.choices[0]!.prompt_logprobs;
    return sampled.map((id, i) => scores[prompt.length + i]![String(id)]!.logprob);
  };

async function post(to: string, body: object): Promise<unknown> {
  const response = await fetch(to, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
  return response.json();
}

interface Compared {
  tokens: number;
  gaps: number;
  lowest: number;
  worst: number;
}

async function compare(turns: Exact[], score: Score): Promise<Compared> {
  const found: Compared = { tokens: 0, gaps: 0, lowest: 0, worst: 0 };
  for (const turn of turns) {
    for (const [i, again] of (await score(turn)).entries()) {
      const recorded = turn.logprobs[i]!;
      if (Number.isNaN(recorded)) found.gaps += 1;
      else found.worst = Math.max(found.worst, Math.abs(again - recorded));
      found.lowest = Math.min(found.lowest, again);
      found.tokens += 1;
    }
  }
  return found;
}

/** Turns that a stop string ended, where its last token and no other is without a value. */
const cutCleanly = (turns: Exact[]): number =>
  turns.filter(({ logprobs, stop }) => stop === STOP && logprobs.findIndex(Number.isNaN) === logprobs.length - 1)
    .length;

const say = (who: string, { tokens, gaps, lowest, worst }: Compared): void =>
  console.log(
    `log probabilities by ${who.padEnd(23)}${tokens} tokens from ${lowest.toFixed(2)} to 0, ${gaps} without a value: largest difference ${worst.toExponential(2)}`,
  );

const embedded = await startEngine();
try {
  const bundle = await demoBundle(model, join(work, "bundle"));
  const flags = ["--upstream", url, "--renderer", bundle];
  const whole = await record(work, "whole", flags);
  const joined = ["--tito-prompt-mode", "incremental", "--shadow-render", "1", "--engine", "llamacpp"];
  const incremental = await record(work, "incremental", [...flags, ...joined]);
  // What was sampled from is recorded at any temperature.
  const warm = await record(work, "warm", flags, conversations({ temperature: WARM }));
  const cut = await record(work, "cut", flags, conversations({ stop: [STOP] }));
  const all = [...whole, ...incremental];
  const own = await compare(all, byLlamacpp);
  const other = await compare(all, byEmbedded(embedded, 1));
  const warmed = await compare(warm, byEmbedded(embedded, WARM));
  const modes = sameTokens(whole, incremental);
  const processed = [...all, ...warm].every((turn) => turn.mode === "processed");
  console.log(`calls                                   ${whole.length} + ${incremental.length} + ${warm.length}`);
  console.log(`render probe                            equal (checked by the sidecar at start)`);
  console.log(`full history and incremental, same ids  ${modes}`);
  console.log(`log probabilities are processed         ${processed}`);
  const stopped = cut.filter(({ stop }) => stop === STOP).length;
  console.log(
    `ended by a stop string                  ${stopped}, their last token alone without a value: ${cutCleanly(cut)}`,
  );
  say("llama.cpp", own);
  say("the embedded engine", other);
  say(`it at temperature ${WARM}`, warmed);
  const close = [own, other, warmed].every(({ worst }) => worst <= TOLERANCE);
  if (
    !modes ||
    !processed ||
    stopped === 0 ||
    cutCleanly(cut) !== stopped ||
    !close ||
    own.tokens === 0 ||
    own.gaps === own.tokens
  )
    process.exitCode = 1;
} finally {
  await embedded.close();
  rmSync(work, { recursive: true, force: true });
}
