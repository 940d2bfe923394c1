/** The packed command, installed by npm into an empty directory far from the workspace, records and materializes a call. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { execa, type ResultPromise } from "execa";
import { afterAll, beforeAll, expect, it } from "vitest";

const root = resolve(import.meta.dirname, "../..");
const dir = mkdtempSync(join(tmpdir(), "tito-pack-test-"));
const home = join(dir, "home");
const tito = join(home, "node_modules/.bin/tito");
let tarball = "";
let engine: ResultPromise | undefined;

const run = (args: readonly string[]) => execa(tito, args, { cwd: home, stdin: "ignore" });

/** One chat call, as any OpenAI client makes it. */
const CALL = `
const reply = await fetch(process.env.OPENAI_BASE_URL + "/chat/completions", {
  method: "POST",
  headers: { authorization: "Bearer " + process.env.OPENAI_API_KEY, "content-type": "application/json" },
  body: JSON.stringify({ model: "policy", max_tokens: 8, messages: [{ role: "user", content: "Use calc: 37 58" }] }),
});
if (!reply.ok) throw new Error(await reply.text());
`;

beforeAll(async () => {
  const packed = await execa("node", ["--import", "tsx", "scripts/pack.ts", join(dir, "out")], { cwd: root });
  tarball = packed.stdout.trim();
  mkdirSync(home);
  writeFileSync(join(home, "package.json"), '{"private":true}');
  await execa("npm", ["install", "--prefer-offline", "--no-audit", "--no-fund", tarball], { cwd: home });
});

afterAll(async () => {
  engine?.kill("SIGTERM");
  await engine?.catch(() => undefined);
  rmSync(dir, { recursive: true, force: true });
});

it("npm installs the tarball alone, and the patched template engine is the one that runs", async () => {
  expect((await run(["--version"])).stdout).toBe("0.1.0");
  const installed = join(home, "node_modules/@tito/cli");
  const read = (path: string): string => readFileSync(path, "utf8");
  const jinja = "node_modules/@huggingface/jinja/dist/index.js";
  expect(read(join(installed, jinja))).toBe(read(join(root, "packages/renderer", jinja)));
  const manifest = JSON.parse(read(join(installed, "package.json"))) as { dependencies: Record<string, string> };
  expect(Object.values(manifest.dependencies).filter((range) => range.startsWith("workspace:"))).toEqual([]);
  expect(existsSync(join(installed, "LICENSE"))).toBe(true);
});

it("the installed command serves the embedded model, records a call with each prompt source, verifies and materializes", async () => {
  engine = execa(tito, ["engine"], { cwd: home, stdin: "ignore", buffer: false });
  const [line] = await engine.stdout!.take(1).toArray();
  const { url } = JSON.parse(String(line)) as { url: string };
  const model = join(home, "node_modules/@tito/cli/node_modules/@tito/reference-engine/fixtures/policy");
  await run(["bundle", "--from", model, "--family", "demo", "--out", "bundle"]);
  for (const renderer of ["engine", "bundle"]) {
    const out = `trials/${renderer}/tito`;
    const flags = ["--upstream", url, "--model", "policy", "--renderer", renderer, "--out", out];
    await run(["run", ...flags, "--", process.execPath, "--input-type=module", "-e", CALL]);
    writeFileSync(join(home, `trials/${renderer}/reward.json`), '{"reward": 1}');
    expect((await run(["verify", out])).exitCode).toBe(0);
  }
  for (const name of ["samples.parquet", "samples.jsonl"]) await run(["materialize", "trials", "--out", name]);
  const rows = readFileSync(join(home, "samples.jsonl"), "utf8").trim().split("\n");
  const lines = rows.map((row) => JSON.parse(row) as { samples: { tokens: number[]; loss_mask: number[] }[] });
  expect(lines).toHaveLength(2);
  for (const { samples } of lines) expect(samples.flatMap((sample) => sample.loss_mask)).toContain(1);
  expect(lines[0]!.samples[0]!.tokens).toEqual(lines[1]!.samples[0]!.tokens);
});
