import { execFileSync, spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { readTrajectory } from "@tito/format";
import { describe, expect, it } from "vitest";
import { postChat, scriptedEngine, serverBefore, startTestSidecar, temporaryDir, turnsOf, user } from "./harness.js";

const RULES = [
  { match: { lastContains: "long" }, reply: { content: "word ".repeat(20_000) } },
  { match: { lastContains: "hello" }, reply: { content: "Good day." } },
];
const HELLO = { messages: [user("hello")] };

describe("a trajectory", () => {
  it("says when its process died of a bug", async () => {
    const engine = await scriptedEngine(RULES);
    const started = await startTestSidecar(engine);
    await (await postChat(started, HELLO)).text();
    started.sidecar.crashed("Error: boom\n at somewhere");
    const log = readTrajectory(join(started.out, "t1"), { mode: "tail" });
    expect(log.lifecycle.map((record) => record.event)).toContain("crash");
  });

  it("has legal requests that were refused on record", async () => {
    const engine = await scriptedEngine(RULES);
    const started = await startTestSidecar(engine);
    expect((await postChat(started, { ...HELLO, n: 2 })).status).toBe(400);
    const log = await started.sealed();
    expect(log.uncaptured).toMatchObject([{ reason: "refused_unsupported", status: 400, lost_tokens: false }]);
  });

  it("can not be opened by two processes at once", async () => {
    const engine = await scriptedEngine(RULES);
    const started = await startTestSidecar(engine);
    await expect(startTestSidecar(engine, { out: started.out })).rejects.toMatchObject({ code: "already_exists" });
    await (await postChat(started, HELLO)).text();
    expect(turnsOf(await started.sealed())).toHaveLength(1);
  });

  it("is sealed although a harness does not read the end of its answer, and keeps what was sampled", async () => {
    const engine = await scriptedEngine(RULES);
    const started = await startTestSidecar(engine, { sealTimeoutMs: 0 });
    const { hostname, port, pathname } = new URL(started.url);
    const body = JSON.stringify({ model: "policy", messages: [user("long")], stream: true });
    const socket = connect(Number(port), hostname);
    socket.pause();
    socket.write(
      `POST ${pathname}/chat/completions HTTP/1.1\r\nhost: ${hostname}:${port}\r\nauthorization: Bearer ${started.key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    await new Promise((resolve) => socket.once("readable", resolve));
    const [report] = await started.sidecar.close("test");
    expect(report?.turns).toBe(1);
    socket.destroy();
  });
});

describe("an engine that tells no version of its weights", () => {
  it("has the one of the flag, else none", async () => {
    const engine = await scriptedEngine(RULES);
    const front = await serverBefore(engine, (request, response) => {
      if (request.url !== "/weight_info") return false;
      response.writeHead(404).end();
      return true;
    });
    for (const weightVersion of ["step-9", null]) {
      const started = await startTestSidecar(front, { weightVersion });
      await (await postChat(started, HELLO)).text();
      const [turn] = turnsOf(await started.sealed());
      expect(turn!.record.weight_versions).toEqual([
        { version: weightVersion ?? "unknown", start: 0, end: turn!.sampledIds.length },
      ]);
    }
  });
});

const isRoot = process.getuid?.() === 0;
if (!isRoot) console.error("SKIPPED: --agent-user needs root");

describe.runIf(isRoot)("tito run --agent-user", () => {
  it("starts COMMAND under that user, who can neither read nor change the trajectory", async () => {
    const engine = await scriptedEngine(RULES);
    const out = join(temporaryDir(), "out");
    mkdirSync(out, { mode: 0o755 });
    execFileSync("chmod", ["755", join(out, "..")]);
    const tito = fileURLToPath(new URL("fixtures/tito.mjs", import.meta.url));
    const script = [
      "id -un",
      'test -r "$TITO_ENDPOINT_FILE" && echo endpoint',
      `cat ${out}/t1/journal.seg > /dev/null 2>&1 || echo unreadable`,
      `rm -rf ${out}/t1 > /dev/null 2>&1; test -e ${out}/t1 && echo there`,
      "exit 3",
    ].join("; ");
    const flags = ["--upstream", engine.url, "--model", "policy", "--out", out, "--trajectory-id", "t1"];
    const child = spawn(
      process.execPath,
      [tito, "run", ...flags, "--agent-user", "nobody", "--", "/bin/sh", "-c", script],
      { stdio: ["ignore", "pipe", "pipe"] },
    );
    let stdout = "";
    child.stdout.on("data", (chunk) => {
      stdout += chunk;
    });
    const code = await new Promise((resolve) => child.once("close", resolve));
    expect(stdout.split("\n")).toEqual(["nobody", "endpoint", "unreadable", "there", ""]);
    expect(code).toBe(3);
  });
});
