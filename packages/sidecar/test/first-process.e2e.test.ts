import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { readTrajectory } from "@tito/format";
import { describe, expect, it } from "vitest";
import { engineTest, postChat, readEvents, scriptedEngine, temporaryDir, turnsOf, user } from "./harness.js";
import { type SidecarProcess, startProcess, startSidecarProcess, TITO } from "./processes.js";

const RULES = [{ match: { lastContains: "hello" }, reply: { content: "one two three four five six seven" } }];
const CHAT = { path: "/v1/chat/completions", match: "hello" };
const HELLO = { messages: [user("hello")] };
const NAMESPACE = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"];
const AGENT = join(import.meta.dirname, "fixtures/agent.mjs");

const canUnshare = spawnSync(NAMESPACE[0]!, [...NAMESPACE.slice(1), "true"]).status === 0;
if (!canUnshare) console.error("SKIPPED: a PID namespace of its own needs unshare and the right to use it");

async function setup() {
  const engine = await scriptedEngine(RULES);
  const out = join(temporaryDir(), "out");
  const flags = ["--upstream", engine.url, "--model", "policy", "--out", out, "--trajectory-id", "t1"];
  return { engine, flags, trajectory: join(out, "t1") };
}

/** The process that `unshare` started: it has another number outside of its namespace than the 1 inside. */
function firstProcess(unshare: number): number {
  const pid = Number(readFileSync(`/proc/${unshare}/task/${unshare}/children`, "utf8").trim());
  const inside = /^NSpid:.*\s(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  expect(inside).toBe("1");
  return pid;
}

/** A call that the engine holds after five tokens. */
async function callInFlight(engine: { url: string }, sidecar: SidecarProcess) {
  await engineTest(engine, "faults", { on: CHAT, fault: { kind: "hang_after", tokens: 5 } });
  const events = readEvents(await postChat(sidecar, { ...HELLO, stream: true }));
  await engineTest(engine, "wait", { gauge: "hanging", atLeast: 1 });
  const rest = async (): Promise<string> => {
    let text = "";
    for await (const event of events) text += event;
    return text;
  };
  return rest;
}

describe.runIf(canUnshare)("as the first process of a PID namespace, as in a container", () => {
  it.each([
    ["one SIGTERM waits for what is in flight, then", ["--seal-timeout", "0.3"], 1],
    ["a second SIGTERM does not wait: it", ["--seal-timeout", "600"], 2],
  ])("%s seals, with what was sampled on record, and exits 0 (B5.10)", async (_words, more, signals) => {
    const { engine, flags, trajectory } = await setup();
    const sidecar = await startSidecarProcess([...flags, ...more], { before: NAMESPACE });
    const pid = firstProcess(sidecar.child.pid!);
    await (await postChat(sidecar, HELLO)).text();
    const rest = await callInFlight(engine, sidecar);
    process.kill(pid, "SIGTERM");
    if (signals === 2) {
      // The first one has been taken once the sidecar says that it is sealing.
      const ready = `${new URL(sidecar.url).origin}/readyz`;
      while ((await fetch(ready)).status !== 503);
      process.kill(pid, "SIGTERM");
    }
    expect(await rest()).toContain('"code":"trajectory_sealed"');
    expect(await sidecar.ended).toMatchObject({ code: 0 });
    const log = readTrajectory(trajectory, { mode: "strict" });
    expect(log.complete).toBe(true);
    expect(log.manifest?.status).toBe("complete");
    const turns = turnsOf(log);
    expect(turns.map((turn) => turn.record.defects)).toEqual([[], ["aborted_by_seal"]]);
    expect(turns[1]!.sampledIds).toHaveLength(5);
  });

  it("tito run hands a SIGTERM on to COMMAND, seals and ends as COMMAND did", async () => {
    const { flags, trajectory } = await setup();
    const command = [process.execPath, AGENT, "ask", "wait"];
    const run = startProcess([...NAMESPACE, process.execPath, TITO, "run", ...flags, "--", ...command]);
    await run.line("waiting");
    process.kill(firstProcess(run.child.pid!), "SIGTERM");
    expect((await run.ended).code).toBe(128 + 15);
    const log = readTrajectory(trajectory, { mode: "strict" });
    expect(log.complete).toBe(true);
    expect(turnsOf(log)).toHaveLength(1);
  });
});
