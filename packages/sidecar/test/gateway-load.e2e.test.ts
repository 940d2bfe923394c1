import { writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { join } from "node:path";
import { readTrajectory } from "@tito/format";
import { describe, expect, it } from "vitest";
import { trajectoryKey } from "../src/gate/gate.js";
import { engineLog, scriptedEngine, temporaryDir, turnsOf, user } from "./harness.js";
import { createMeasure, MEASURABLE, type Measured, type SidecarProcess, startSidecarProcess } from "./processes.js";

const ADMIN = "admin-key-of-the-gateway";
const RULES = [{ match: { contains: "say" }, reply: { content: "As you say." } }];
/** `npm run check:full -- gateway` serves 256 trajectories of 20 turns. */
const TRAJECTORIES = Number(process.env.TITO_GATEWAY_TRAJECTORIES ?? "64");
const TURNS = 20;
const AT_ONCE = 16;
const KIB = 1024;
/** What one open trajectory may hold, after its turns: their messages, the ids of its lines, what a retry may ask for, and its part of the code compiled meanwhile. */
const HELD_MAX = 160 * KIB;

const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });

type Message = { role: string; content: string };

function ask(sidecar: SidecarProcess, id: string, messages: readonly Message[]): Promise<Message> {
  const body = JSON.stringify({ model: "policy", messages });
  return new Promise((resolve, reject) => {
    const headers = { "content-type": "application/json", authorization: `Bearer ${trajectoryKey(ADMIN, id)}` };
    const url = new URL(`/t/${id}/v1/chat/completions`, sidecar.endpoint.openai_base_url);
    const outgoing = request(url, { method: "POST", agent, headers }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk) => {
        text += chunk;
      });
      response.on("error", reject);
      response.on("end", () => {
        if (response.statusCode !== 200) reject(new Error(`${response.statusCode}: ${text}`));
        else resolve((JSON.parse(text) as { choices: { message: Message }[] }).choices[0]!.message);
      });
    });
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

async function play(sidecar: SidecarProcess, id: string): Promise<void> {
  const messages: Message[] = [];
  for (let turn = 0; turn < TURNS; turn += 1) {
    messages.push(user(`say ${id} ${turn}`));
    const { role, content } = await ask(sidecar, id, messages);
    messages.push({ role, content });
  }
}

/** All of them, so many at a time. */
async function playAll(sidecar: SidecarProcess, ids: readonly string[]): Promise<void> {
  const left = [...ids];
  const worker = async (): Promise<void> => {
    for (let id = left.shift(); id !== undefined; id = left.shift()) await play(sidecar, id);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

describe("a gateway with many open trajectories", () => {
  it(`${TRAJECTORIES} of ${TURNS} turns: nothing crosses, memory is for the lines only, the loop lags no more than at the start (peers C9.64, B5.19)`, async () => {
    const engine = await scriptedEngine(RULES);
    const dir = temporaryDir();
    const out = join(dir, "out");
    const keyFile = join(dir, "key");
    writeFileSync(keyFile, ADMIN);
    const flags = ["--upstream", engine.url, "--model", "policy", "--out", out, "--gateway", "--api-key-file", keyFile];
    const sidecar = await startSidecarProcess([...flags, "--log-level", "warn"], { node: MEASURABLE });
    const measure = createMeasure(sidecar);
    const ids = Array.from({ length: TRAJECTORIES }, (_, index) => `g${index}`);
    await measure();
    // Quarters: what one more costs must not depend on how many there are.
    const quarter = TRAJECTORIES / 4;
    const measured: Measured[] = [];
    for (const [from, to] of [
      [0, quarter],
      [quarter, 2 * quarter],
      [2 * quarter, 4 * quarter],
    ] as const) {
      await playAll(sidecar, ids.slice(from, to));
      measured.push(await measure());
    }
    const [few, half, all] = measured as [Measured, Measured, Measured];
    const first = (half.held - few.held) / quarter;
    const later = (all.held - half.held) / (2 * quarter);
    console.log(
      `held by one more open trajectory: ${(first / KIB).toFixed(1)} KiB, later ${(later / KIB).toFixed(1)} KiB; rss ${((all.rss - few.rss) / KIB / (3 * quarter)).toFixed(1)} KiB`,
    );
    // the first ones are printed only: code that is compiled meanwhile counts with them
    expect(later).toBeLessThan(HELD_MAX);
    // the median: one pause of the machine decides a percentile of so short a run
    expect(all.lag.p50Ms).toBeLessThan(few.lag.p50Ms * 4);
    sidecar.child.kill("SIGTERM");
    expect((await sidecar.ended).code).toBe(0);
    for (const id of ids) {
      const log = readTrajectory(join(out, id), { mode: "strict" });
      expect(log.manifest?.status).toBe("complete");
      const turns = turnsOf(log);
      const asked = turns.flatMap((turn) => turn.record.messages_new.filter(({ role }) => role === "user"));
      expect(asked.map(({ content }) => content)).toEqual(
        Array.from({ length: TURNS }, (_, turn) => `say ${id} ${turn}`),
      );
      expect(new Set(turns.map((turn) => turn.segment)).size).toBe(1);
    }
    expect(await engineLog(engine)).toHaveLength(TRAJECTORIES * TURNS);
  });
});
