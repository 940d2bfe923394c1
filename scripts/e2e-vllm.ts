/**
 * Drives the sidecar against a running vLLM that serves the demo's weights: `node --import tsx scripts/e2e-vllm.ts URL MODEL_DIR`.
 * The same conversation with the same seeds goes through the engine source, the renderer source over both of vLLM's routes for ids, and the renderer source in incremental mode. It must give the
 * same ids each time, the engine must render as the bundle does (the start-up check refuses otherwise), and vLLM must give the recorded log probabilities again.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, request as forward } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { demoBundle, type Exact, type Reached, record, sameTokens, streamed } from "./e2e-conversation.js";

const TOLERANCE = 1e-3;
const [url, model] = process.argv.slice(2);
if (url === undefined || model === undefined) throw new Error("usage: e2e-vllm.ts URL MODEL_DIR");
const work = mkdtempSync(join(tmpdir(), "tito-e2e-vllm-"));

/** The same vLLM without its token route, as it is without `--enable-scale-out`. */
async function withoutTokenRoute(): Promise<{ url: string; close(): void }> {
  const server = createServer((incoming, answer) => {
    if (incoming.url?.startsWith("/inference/") === true) {
      answer.writeHead(404, { "content-type": "application/json" }).end('{"detail":"Not Found"}');
      incoming.resume();
      return;
    }
    const { method, headers } = incoming;
    incoming.pipe(
      forward(`${url}${incoming.url}`, { method, headers }, (response) => {
        answer.writeHead(response.statusCode ?? 502, response.headers);
        response.pipe(answer);
      }),
    );
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close: () => server.close() };
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

/** A streamed answer that vLLM is told to abort when three pieces of it have gone out: the harness must get it whole. */
async function interrupted(to: Reached): Promise<void> {
  const response = await streamed(to, { seed: 3 });
  let text = "";
  let pieces = 0;
  for await (const bytes of response.body!) {
    text += Buffer.from(bytes).toString("utf8");
    pieces += 1;
    const id = /"id":"chatcmpl-([^"]+)"/.exec(text)?.[1];
    if (pieces !== 3 || id === undefined) continue;
    const aborted = await fetch(`${url}/inference/v1/abort_requests`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ request_ids: [id] }),
    });
    if (!aborted.ok) throw new Error(`the abort was refused: ${await aborted.text()}`);
  }
  if (!text.trimEnd().endsWith("data: [DONE]")) throw new Error(`the stream broke off: ${text.slice(-200)}`);
}

const versionsOf = (turns: Exact[]): string =>
  [...new Set(turns.flatMap(({ versions }) => versions.map(({ version }) => version)))].join(", ");

const plain = await withoutTokenRoute();
try {
  const bundle = await demoBundle(model, join(work, "bundle"));
  const to = (upstream: string): string[] => ["--upstream", upstream, "--engine", "vllm"];
  const rendered = ["--renderer", bundle];
  const joined = [...rendered, "--tito-prompt-mode", "incremental", "--shadow-render", "1"];
  const engine = await record(work, "engine", to(url));
  const completions = await record(work, "completions", [...to(plain.url), ...rendered]);
  const renderer = await record(work, "renderer", [...to(url), ...rendered]);
  const incremental = await record(work, "incremental", [...to(url), ...joined]);
  const resumed = await record(work, "resumed", [...to(url), ...rendered], interrupted);
  const all = [...resumed, ...engine, ...completions, ...renderer, ...incremental];
  let worst = 0;
  let lowest = 0;
  let scored = 0;
  for (const turn of all) {
    const again = await rescored(turn);
    again.forEach((logprob, i) => {
      worst = Math.max(worst, Math.abs(logprob - turn.logprobs[i]!));
      lowest = Math.min(lowest, logprob);
    });
    scored += again.length;
  }
  const sources = sameTokens(engine, renderer);
  const routes = sameTokens(completions, renderer);
  const modes = sameTokens(renderer, incremental);
  console.log(
    `calls                                   ${[engine, completions, renderer, incremental].map((turns) => turns.length).join(" + ")}`,
  );
  console.log(`render probe                            equal (checked by the sidecar at start)`);
  console.log(`engine and renderer source, same ids    ${sources}`);
  console.log(`completions and token route, same ids   ${routes}`);
  console.log(`full history and incremental, same ids  ${modes}`);
  console.log(
    `weight versions                         ${versionsOf(completions)} / token route: ${versionsOf(renderer)}`,
  );
  const spans = resumed[0]!.versions.map(({ start, end }) => `${start} to ${end}`).join(", ");
  const joinedUp = resumed.length === 1 && resumed[0]!.versions.length === 2;
  console.log(`aborted by vLLM and gone on, one turn    ${joinedUp}: sampled ids ${spans}`);
  console.log(
    `log probabilities, ${scored} tokens  from ${lowest.toFixed(2)} to 0: largest difference ${worst.toExponential(2)}`,
  );
  if (!sources || !routes || !modes || !joinedUp || !(worst <= TOLERANCE) || scored === 0) process.exitCode = 1;
} finally {
  plain.close();
  rmSync(work, { recursive: true, force: true });
}
