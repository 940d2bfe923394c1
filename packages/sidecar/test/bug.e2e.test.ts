import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { readTrajectory } from "@tito/format";
import { describe, expect, it } from "vitest";
import { postChat, scriptedEngine, temporaryDir, turnsOf, user } from "./harness.js";
import { startProcess, startSidecarProcess, TITO } from "./processes.js";

const RULES = [{ match: { lastContains: "hello" }, reply: { content: "Good day." } }];
const HELLO = { messages: [user("hello")] };
const PRELOAD = ["--import", pathToFileURL(join(import.meta.dirname, "fixtures/throw-at.mjs")).href];
const AGENT = join(import.meta.dirname, "fixtures/agent.mjs");

async function setup(stop: string) {
  const engine = await scriptedEngine(RULES);
  const dir = temporaryDir();
  const out = join(dir, "out");
  const armed = join(dir, "armed");
  const flags = ["--upstream", engine.url, "--model", "policy", "--out", out, "--trajectory-id", "t1"];
  return { out, flags, armed, env: { TITO_THROW_AT: stop, TITO_THROW_FILE: armed }, trajectory: join(out, "t1") };
}

describe("a bug of ours", () => {
  it.each(["gate", "body", "dialect", "prompt", "sample", "relay", "decide", "record", "release"])(
    "at the stop %s ends the process, is on record, and costs nothing that was recorded before (B5.11)",
    async (stop) => {
      const { flags, armed, env, trajectory } = await setup(stop);
      const sidecar = await startSidecarProcess(flags, { node: PRELOAD, env });
      const answer = await (await postChat(sidecar, HELLO)).text();
      expect(answer).toContain("Good day.");
      writeFileSync(armed, "");
      const told = await postChat(sidecar, { ...HELLO, stream: true }).then(
        async (response) => response.text().catch(() => "cut"),
        () => "cut",
      );
      expect(told).not.toContain("[DONE]");
      const { code, stderr } = await sidecar.ended;
      expect(code).toBe(70);
      expect(stderr).toContain(`planted at ${stop}`);
      await expect(postChat(sidecar, HELLO)).rejects.toThrow();
      const log = readTrajectory(trajectory, { mode: "strict" });
      expect(log.lifecycle.at(-1)).toMatchObject({ event: "crash" });
      expect(String(log.lifecycle.at(-1)!.detail)).toContain(`planted at ${stop}`);
      const turns = turnsOf(log);
      // What was recorded before the bug struck is all there, the answer that it kept from the harness included.
      expect(turns).toHaveLength(stop === "release" ? 2 : 1);
      expect(log.deliveries.get(turns[0]!.record.call_id)).toMatchObject([{ outcome: "delivered" }]);
    },
  );

  it("while sealing ends the process too: no server is left that refuses everything", async () => {
    const { flags, armed, env, trajectory } = await setup("seal");
    const sidecar = await startSidecarProcess(flags, { node: PRELOAD, env });
    await (await postChat(sidecar, HELLO)).text();
    writeFileSync(armed, "");
    sidecar.child.kill("SIGTERM");
    expect((await sidecar.ended).code).toBe(70);
    const log = readTrajectory(trajectory, { mode: "strict" });
    expect(log.lifecycle.at(-1)).toMatchObject({ event: "crash" });
    expect(turnsOf(log)).toHaveLength(1);
  });

  it.each(["sample", "record", "seal"])(
    "at the stop %s does not end a run: the sidecar is started again, the harness's retry is served, all is sealed",
    async (stop) => {
      const { flags, armed, env, trajectory } = await setup(stop);
      const steps = ["ask", `touch=${armed}`, ...(stop === "seal" ? [] : ["ask", "ask"])];
      const run = startProcess([process.execPath, TITO, "run", ...flags, "--", process.execPath, AGENT, ...steps], {
        ...env,
        NODE_OPTIONS: PRELOAD.join(" "),
      });
      const { code, stderr } = await run.ended;
      expect(code).toBe(0);
      expect(stderr).toContain("the sidecar crashed (exit 70); starting it again, 1 of 5");
      expect(existsSync(armed)).toBe(false);
      const log = readTrajectory(trajectory, { mode: "strict" });
      expect(log.complete).toBe(true);
      expect(log.lifecycle.map((record) => record.event)).toContain("crash");
      expect(turnsOf(log)).toHaveLength(stop === "seal" ? 1 : 3);
    },
  );
});
