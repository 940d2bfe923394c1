import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { readTrajectory, type TrajectoryLog } from "@tito/format";
import { describe, expect, it, onTestFinished } from "vitest";
import { filesBelow, scriptedEngine, serverBefore, temporaryDir, turnsOf } from "./harness.js";

const TITO = fileURLToPath(new URL("fixtures/tito.mjs", import.meta.url));
const AGENT = fileURLToPath(new URL("fixtures/agent.mjs", import.meta.url));
const RULES = [{ match: { lastContains: "hello" }, reply: { content: "Good day." } }];
const KEY = "canary-upstream-key-7f3a";

interface Ended {
  code: number | null;
  signal: string | null;
  stdout: string;
  stderr: string;
}

function start(
  args: readonly string[],
  options: { env?: Record<string, string>; extraPipe?: boolean } = {},
): { child: ChildProcess; ended: Promise<Ended>; output: (text: string) => Promise<void>; extra: () => string } {
  const child = spawn(process.execPath, [TITO, ...args], {
    stdio: ["ignore", "pipe", "pipe", ...(options.extraPipe === true ? (["pipe"] as const) : [])],
    env: { ...process.env, ...options.env },
  });
  let stdout = "";
  let stderr = "";
  let extra = "";
  const watchers = new Set<() => void>();
  child.stdout!.on("data", (chunk) => {
    stdout += chunk;
    for (const watcher of watchers) watcher();
  });
  child.stderr!.on("data", (chunk) => {
    stderr += chunk;
  });
  child.stdio[3]?.on("data", (chunk: Buffer) => {
    extra += chunk;
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const ended = new Promise<Ended>((resolve) =>
    child.once("close", (code, signal) => resolve({ code, signal, stdout, stderr })),
  );
  const output = (text: string): Promise<void> =>
    new Promise((resolve, reject) => {
      const check = (): void => {
        if (stdout.includes(text)) resolve();
      };
      watchers.add(check);
      check();
      void ended.then(({ code }) => reject(new Error(`ended with ${code} before "${text}": ${stderr}`)));
    });
  return { child, ended, output, extra: () => extra };
}

/** A harness that takes a refusal with a smile. */
const REFUSED = `fetch(process.env.OPENAI_BASE_URL + "/chat/completions", { method: "POST",
  headers: { authorization: "Bearer " + process.env.OPENAI_API_KEY, "content-type": "application/json" },
  body: JSON.stringify({ model: "policy", messages: [{ role: "user", content: "hello" }] }) }).then((r) => r.text())`;

async function setup() {
  const engine = await scriptedEngine(RULES);
  const out = join(temporaryDir(), "out");
  const flags = ["--upstream", engine.url, "--model", "policy", "--out", out, "--trajectory-id", "t1"];
  const run = (steps: readonly string[], more: readonly string[] = [], options = {}) =>
    start(["run", ...flags, ...more, "--", process.execPath, AGENT, ...steps], options);
  const read = (): TrajectoryLog => readTrajectory(join(out, "t1"), { mode: "strict" });
  return { engine, out, flags, run, read };
}

describe("tito run", () => {
  it("points COMMAND at a sidecar, seals, returns its exit code, and keeps standard output to COMMAND", async () => {
    const { run, read } = await setup();
    const ended = await run(["ask", "ask", "exit=7"]).ended;
    expect(ended).toMatchObject({ code: 7, stdout: "Good day.\nGood day.\n", stderr: "" });
    const log = read();
    expect(turnsOf(log)).toHaveLength(2);
    expect(log.manifest?.status).toBe("complete");
    expect(log.complete).toBe(true);
  });

  it("gives COMMAND the variables that harnesses read, and no key of the engine", async () => {
    const { run } = await setup();
    const keyFile = join(temporaryDir(), "key");
    writeFileSync(keyFile, `${KEY}\n`);
    const { stdout } = await run(["ask", "env"], ["--upstream-key-file", keyFile], {
      env: { MY_ENGINE_KEY: KEY, VLLM_API_KEY: "x", KEPT: "yes" },
    }).ended;
    const env = JSON.parse(stdout.split("\n")[1]!) as Record<string, string>;
    const base = env["OPENAI_BASE_URL"]!;
    expect(base).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/t\/t1\/v1$/);
    expect(env).toMatchObject({ OPENAI_API_BASE: base, ANTHROPIC_BASE_URL: base.replace(/\/v1$/, ""), KEPT: "yes" });
    expect(env["ANTHROPIC_API_KEY"]).toBe(env["OPENAI_API_KEY"]);
    expect(env["MY_ENGINE_KEY"]).toBeUndefined();
    expect(env["VLLM_API_KEY"]).toBeUndefined();
    expect(existsSync(env["TITO_ENDPOINT_FILE"]!)).toBe(false);
  });

  it("starts a killed sidecar again on the same port: the harness goes on, and so does its lineage", async () => {
    const { run, read } = await setup();
    const ended = await run(["ask", "kill-sidecar", "ask", "ask"]).ended;
    expect(ended).toMatchObject({ code: 0, stdout: "Good day.\nGood day.\nGood day.\n" });
    expect(ended.stderr).toContain("starting it again, 1 of 5");
    const log = read();
    const turns = turnsOf(log);
    expect(log.journals).toHaveLength(2);
    expect(turns).toHaveLength(3);
    expect(log.segments.map((segment) => segment.header.continues)).toEqual([null, { segment: 1, why: "recovered" }]);
    expect(turns.map((turn) => turn.record.decision.reason)).toEqual(["first_turn", "recovered", "extends_tip"]);
    const [first, second] = turns;
    expect(second!.promptIds.slice(0, first!.promptIds.length + first!.sampledIds.length)).toEqual([
      ...first!.promptIds,
      ...first!.sampledIds,
    ]);
  });

  it.each([
    [["wait"], "SIGTERM", 143],
    [["wait"], "SIGINT", 130],
  ] as const)("forwards a signal to COMMAND (%j, %s), seals, and exits with 128 + n", async (steps, signal, code) => {
    const { run, read } = await setup();
    const running = run(["ask", ...steps]);
    await running.output("waiting");
    running.child.kill(signal);
    expect((await running.ended).code).toBe(code);
    expect(read().complete).toBe(true);
  });

  it("is loud when COMMAND ended happily and nothing was captured (peers C8.58)", async () => {
    const { run } = await setup();
    const ended = await run(["exit=0"]).ended;
    expect(ended.code).toBe(125);
    expect(ended.stderr).toContain("nothing was captured");
  });

  it("says what the engine answered when every call of COMMAND was refused", async () => {
    const { flags } = await setup();
    const ended = await start(["run", ...flags, "--max-context-tokens", "1", "--", process.execPath, "-e", REFUSED])
      .ended;
    expect(ended.code).toBe(125);
    expect(ended.stderr).toMatch(
      /nothing was captured: 1 calls came and none got token ids; the last ended as \w+ \(400\): /,
    );
  });

  it("writes the chain head to an inherited descriptor after each turn, and once more when it is sealed", async () => {
    const { run, read } = await setup();
    const running = run(["ask", "ask"], ["--anchor-fd", "3"], { extraPipe: true });
    await running.ended;
    const lines = running
      .extra()
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines).toHaveLength(3);
    const { commits, manifest } = read();
    expect(lines.map((line) => line["trajectory"])).toEqual(["t1", "t1", "t1"]);
    expect(lines.every((line) => /^[0-9a-f]{64}$/.test(String(line["digest"])))).toBe(true);
    expect(Number(lines[1]!["seq"])).toBeGreaterThan(Number(lines[0]!["seq"]));
    expect(lines[2]).toMatchObject({ ...manifest!.head });
    expect(commits).toHaveLength(2);
  });

  it.each([
    ["a command that is not there", ["--", "no-such-command-here"], 127, "command not found"],
    ["a path that is not there", ["--", "./no/such/file"], 127, "command not found"],
    ["a file that is no program", ["--", fileURLToPath(import.meta.url)], 126, "permission denied"],
    ["no command", [], 64, "no COMMAND"],
    ["an unknown flag", ["--no-such-flag", "--", "true"], 64, "no-such-flag"],
    ["an engine without an adapter", ["--engine", "ollama", "--", "true"], 64, "these work: auto, vllm"],
    ["a bad number", ["--attempt", "x", "--", "true"], 64, "--attempt"],
    ["a bad id", ["--run-id", "", "--", "true"], 64, "--run-id"],
  ])("refuses %s in one line and writes nothing", async (_what, rest, code, words) => {
    const { flags, out } = await setup();
    const ended = await start(["run", ...flags, ...rest]).ended;
    expect(ended.code).toBe(code);
    expect(ended.stderr.split("\n").length).toBeLessThanOrEqual(3);
    expect(ended.stderr).toContain(words);
    expect(existsSync(out)).toBe(false);
  });
});

describe("tito sidecar", () => {
  it("prints its endpoint as the first line, seals on SIGTERM and exits 0", async () => {
    const { flags, read } = await setup();
    const endpointFile = join(temporaryDir(), "endpoint.json");
    const running = start(["sidecar", ...flags, "--endpoint-file", endpointFile]);
    await running.output("\n");
    const [file] = filesBelow(join(endpointFile, ".."));
    running.child.kill("SIGTERM");
    const ended = await running.ended;
    expect(ended.code).toBe(0);
    expect(JSON.parse(ended.stdout)).toMatchObject({
      schema: "tito.endpoint/v1",
      pid: running.child.pid,
      trajectory_id: "t1",
    });
    expect(JSON.parse(String(file!.bytes))).toEqual(JSON.parse(ended.stdout));
    expect(existsSync(endpointFile)).toBe(false);
    expect(read().complete).toBe(true);
  });

  it("keeps its address and key over a restart when it is given both", async () => {
    const { flags } = await setup();
    const keyFile = join(temporaryDir(), "key");
    writeFileSync(keyFile, "tito_fixed_key");
    const first = start(["sidecar", ...flags, "--api-key-file", keyFile]);
    await first.output("\n");
    first.child.kill("SIGKILL");
    const before = JSON.parse((await first.ended).stdout) as Record<string, unknown>;
    const port = new URL(String(before["openai_base_url"])).port;
    const second = start(["sidecar", ...flags, "--api-key-file", keyFile, "--port", port]);
    await second.output("\n");
    second.child.kill("SIGTERM");
    const after = JSON.parse((await second.ended).stdout) as Record<string, unknown>;
    expect({ ...after, pid: 0 }).toEqual({ ...before, pid: 0 });
  });

  it("refuses a taken port, an unreachable engine, an unknown model, an id-less engine and an unwritable directory: one line each, nothing left behind", async () => {
    const { engine, flags, out } = await setup();
    const taken = createServer().listen(0, "127.0.0.1");
    onTestFinished(() => void taken.close());
    const idless = await serverBefore(engine, (request, response) => {
      if (request.url !== "/v1/chat/completions") return false;
      response.writeHead(200, { "content-type": "application/json" });
      response.end(
        '{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}',
      );
      return true;
    });
    const file = join(temporaryDir(), "a-file");
    writeFileSync(file, "");
    const { port } = taken.address() as AddressInfo;
    const cases: [string[], number, RegExp][] = [
      [["--port", String(port)], 73, /cannot listen on 127\.0\.0\.1 port \d+: EADDRINUSE/],
      [["--upstream", "http://127.0.0.1:1"], 69, /engine at 127\.0\.0\.1:1 did not answer: ECONNREFUSED/],
      [["--model", "other"], 69, /does not serve the model "other"/],
      [["--upstream", idless.url], 69, /carry no prompt ids, no sampled ids, no log probabilities/],
      [["--out", join(file, "sub")], 73, /a-file/],
    ];
    for (const [more, code, words] of cases) {
      const ended = await start(["sidecar", ...flags, ...more]).ended;
      expect(ended.stderr).toMatch(words);
      expect(ended.code).toBe(code);
      expect(ended.stdout).toBe("");
      expect(existsSync(out)).toBe(false);
    }
  });

  it("seals when the process that started it is gone", async () => {
    const { flags, read } = await setup();
    const child = spawn(process.execPath, [TITO, "sidecar", ...flags, "--parent-fd", "3"], {
      stdio: ["ignore", "pipe", "ignore", "pipe"],
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    const parent = child.stdio[3] as NodeJS.WritableStream;
    parent.write('{"apiKey":"harness-key","ownerKey":"owner-key-1"}\n');
    await new Promise((resolve) => child.stdout!.once("data", resolve));
    const exited = new Promise((resolve) => child.once("exit", resolve));
    parent.end();
    expect(await exited).toBe(0);
    expect(read().complete).toBe(true);
  });
});

describe("secrets", () => {
  it("are nowhere at rest: not in a file, not in a log", async () => {
    const { run, out } = await setup();
    const dir = temporaryDir();
    mkdirSync(join(dir, "keys"));
    const keyFile = join(dir, "keys", "upstream");
    writeFileSync(keyFile, KEY);
    const ended = await run(["ask"], ["--upstream-key-file", keyFile, "--log-level", "info"]).ended;
    expect(ended.code).toBe(0);
    expect(ended.stderr).toContain("listening");
    for (const { path, bytes } of filesBelow(out)) expect(bytes.includes(KEY), path).toBe(false);
    expect(ended.stdout + ended.stderr).not.toContain(KEY);
    expect(ended.stderr).not.toContain("tito_");
    for (const { path, bytes } of filesBelow(out)) expect(bytes.includes("tito_"), path).toBe(false);
    expect(readdirSync(out)).toEqual(["t1"]);
  });
});
