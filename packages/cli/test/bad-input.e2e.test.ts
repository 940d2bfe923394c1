import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { startEngine } from "@tito/reference-engine";
import { execa } from "execa";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const TITO = resolve(import.meta.dirname, "../dist/main.js");
const dir = mkdtempSync(join(tmpdir(), "tito-bad-input-"));
let engine: Awaited<ReturnType<typeof startEngine>>;
let idless: Server;
let idlessUrl: string;

beforeAll(async () => {
  engine = await startEngine({});
  // A server as many are: it completes chats and never says a token id.
  idless = createServer((request, response) => {
    request.resume().on("end", () => {
      response.setHeader("content-type", "application/json");
      const models = { object: "list", data: [{ id: "policy", object: "model" }] };
      const message = { role: "assistant", content: "hi" };
      const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
      const chat = {
        id: "c",
        object: "chat.completion",
        created: 1,
        model: "policy",
        choices: [{ index: 0, message, finish_reason: "stop" }],
        usage,
      };
      response.end(JSON.stringify(request.url === "/v1/models" ? models : chat));
    });
  });
  await new Promise<void>((done) => idless.listen(0, "127.0.0.1", done));
  idlessUrl = `http://127.0.0.1:${(idless.address() as AddressInfo).port}`;
});
afterAll(async () => {
  await engine.close();
  idless.close();
  chmodSync(dir, 0o700);
  rmSync(dir, { recursive: true, force: true });
});

async function tito(...args: string[]) {
  const run = await execa(process.execPath, [TITO, ...args], { cwd: dir, reject: false, stdin: "ignore" });
  return {
    exitCode: run.exitCode,
    stdout: String(run.stdout),
    lines: String(run.stderr)
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith("{")),
  };
}

const run = (upstream: string, out: string, ...rest: string[]) =>
  tito("run", "--upstream", upstream, "--model", "policy", "--out", out, ...rest);

describe("bad input gets one clear line, an exit code, and leaves nothing half-written", () => {
  it.each([
    ["run", ["run", "--nope"]],
    ["sidecar", ["sidecar", "--nope"]],
    ["materialize", ["materialize", "--nope"]],
    ["engine", ["engine", "--nope"]],
    ["an unknown command", ["frobnicate"]],
  ])("%s: an unknown flag or word", async (_name, args) => {
    const { exitCode, lines, stdout } = await tito(...args);
    expect(exitCode).toBe(64);
    expect(stdout).toBe("");
    expect(lines[0]).toMatch(/unknown/);
  });

  it("a missing flag", async () => {
    const { exitCode, lines } = await tito("sidecar", "--model", "policy", "--out", join(dir, "x"));
    expect(exitCode).toBe(64);
    expect(lines[0]).toContain("--upstream");
  });

  it("an unreachable engine", async () => {
    const out = join(dir, "unreachable");
    const { exitCode, lines } = await run("http://127.0.0.1:9", out, "--", "true");
    expect(exitCode).toBe(125);
    expect(lines.join("\n")).toMatch(/127\.0\.0\.1:9/);
    expect(existsSync(out)).toBe(false);
  });

  it("an engine that tells no token ids", async () => {
    const out = join(dir, "idless");
    const { exitCode, lines } = await run(idlessUrl, out, "--", "true");
    expect(exitCode).toBe(125);
    expect(lines.join("\n")).toMatch(/ids/);
    expect(existsSync(out)).toBe(false);
  });

  it("a model that the engine does not have", async () => {
    const { exitCode, lines } = await tito(
      "run",
      "--upstream",
      engine.url,
      "--model",
      "other",
      "--out",
      join(dir, "model"),
      "--",
      "true",
    );
    expect(exitCode).toBe(125);
    expect(lines.join("\n")).toContain("other");
  });

  it("an engine kind without an adapter", async () => {
    const { exitCode, lines } = await run(engine.url, join(dir, "kind"), "--engine", "ollama", "--", "true");
    expect(exitCode).toBe(64);
    expect(lines.join("\n")).toMatch(/ollama.*\n.*vllm/s);
  });

  it("a taken port", async () => {
    const out = join(dir, "port");
    const { exitCode, lines } = await run(engine.url, out, "--port", String(engine.port), "--", "true");
    expect(exitCode).toBe(125);
    expect(lines.join("\n")).toMatch(new RegExp(`port ${engine.port}.*EADDRINUSE`));
    expect(existsSync(out)).toBe(false);
  });

  it("a directory that cannot be written", async () => {
    writeFileSync(join(dir, "file"), "");
    const { exitCode, lines } = await run(engine.url, join(dir, "file", "out"), "--", "true");
    expect(exitCode).toBe(125);
    expect(lines.join("\n")).toContain(join(dir, "file"));
  });

  it("a command that is not there, and one that cannot be executed", async () => {
    const out = join(dir, "command");
    expect(await run(engine.url, out, "--", "no-such-command")).toMatchObject({
      exitCode: 127,
      lines: [expect.stringContaining("no-such-command")],
    });
    writeFileSync(join(dir, "plain"), "", { mode: 0o600 });
    expect(await run(engine.url, out, "--", join(dir, "plain"))).toMatchObject({ exitCode: 126 });
    expect(existsSync(out)).toBe(false);
  });

  it("no command at all", async () => {
    expect(await run(engine.url, join(dir, "none"))).toMatchObject({ exitCode: 64 });
  });

  it("a command that succeeds and never calls: loud", async () => {
    const { exitCode, lines } = await run(engine.url, join(dir, "silent"), "--", "true");
    expect(exitCode).toBe(125);
    expect(lines.join("\n")).toContain("nothing was captured");
  });

  it("a command's own failure is its own", async () => {
    expect(await run(engine.url, join(dir, "own"), "--", "sh", "-c", "exit 3")).toMatchObject({
      exitCode: 3,
      stdout: "",
    });
    expect(await run(engine.url, join(dir, "signal"), "--", "sh", "-c", "kill -TERM $$")).toMatchObject({
      exitCode: 143,
    });
  });

  it("materialize: nothing there, no suffix, no directory", async () => {
    mkdirSync(join(dir, "empty"));
    expect(await tito("materialize", "empty", "--out", "a.jsonl")).toMatchObject({ exitCode: 66 });
    expect(await tito("materialize", "empty", "--out", "a")).toMatchObject({ exitCode: 64 });
    expect(await tito("materialize", "empty")).toMatchObject({ exitCode: 64 });
    expect(readdirSync(dir).filter((name) => name.startsWith("a"))).toEqual([]);
  });

  it("verify: a path that is not there", async () => {
    expect(await tito("verify", "gone")).toMatchObject({ exitCode: 64 });
  });
});
