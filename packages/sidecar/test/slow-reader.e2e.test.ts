import { type IncomingMessage, request, type ServerResponse } from "node:http";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { readTrajectory } from "@tito/format";
import { describe, expect, it } from "vitest";
import { scriptedEngine, serverBefore, temporaryDir, turnsOf, user } from "./harness.js";
import { createMeasure, MEASURABLE, type SidecarProcess, startSidecarProcess } from "./processes.js";

const RULES = [{ match: { lastContains: "hello" }, reply: { content: "Good day." } }];
const STREAMS = 20;
const STREAM_BYTES = 50_000_000;
const ROUND_MS = 10;
const ROUND_BYTES = 2_000;
const MIB = 1024 * 1024;

/** One token as an engine streams it, with the padding that alternatives of a token bring. */
const TOKEN = `data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"policy","choices":[{"index":0,"delta":{"content":"w"},"token_ids":[5],"logprobs":{"content":[{"logprob":-1,"top_logprobs":"${"p".repeat(4_000)}"}]},"finish_reason":null}]}\n\n`;
const FIRST = `data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"policy","prompt_token_ids":[1,2,3],"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}\n\n`;

/** Streams tokens as fast as they are taken, until `bytes` are. */
function flood(response: ServerResponse, bytes: number, count: (bytes: number) => void): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.write(FIRST);
  let left = bytes;
  const more = (): void => {
    while (left > 0 && !response.destroyed) {
      left -= TOKEN.length;
      count(TOKEN.length);
      if (!response.write(TOKEN)) {
        response.once("drain", more);
        return;
      }
    }
  };
  more();
}

function open(sidecar: SidecarProcess): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const headers = { "content-type": "application/json", authorization: `Bearer ${sidecar.key}` };
    const outgoing = request(`${sidecar.url}/chat/completions`, { method: "POST", agent: false, headers }, resolve);
    outgoing.on("error", reject);
    // Each asks for its own, as 20 harnesses would.
    outgoing.end(JSON.stringify({ model: "policy", stream: true, logprobs: true, messages: [user("flood")] }));
  });
}

describe("harnesses that read at a trickle", () => {
  it("20 streams of 50 MB: the engine is slowed down to their pace, and memory does not grow (B5.15)", async () => {
    const engine = await scriptedEngine(RULES);
    let sent = 0;
    const front = await serverBefore(engine, (incoming, response) => {
      if (incoming.headers["x-tito-head"] === undefined || incoming.url !== "/v1/chat/completions") return false;
      incoming.resume();
      flood(response, STREAM_BYTES, (bytes) => {
        sent += bytes;
      });
      return true;
    });
    const out = join(temporaryDir(), "out");
    const flags = ["--upstream", front.url, "--model", "policy", "--out", out, "--trajectory-id", "t1"];
    const sidecar = await startSidecarProcess([...flags, "--orphan-grace", "0"], { node: MEASURABLE });
    const measure = createMeasure(sidecar);
    const before = await measure();
    const readers = await Promise.all(Array.from({ length: STREAMS }, () => open(sidecar)));
    let read = 0;
    // Until nothing more fits in between: then the engine sends what the readers take, and no more.
    let quiet = 0;
    while (quiet < 50 && sent < STREAMS * STREAM_BYTES) {
      const earlier = { sent, read };
      for (const reader of readers) read += (reader.read(ROUND_BYTES) as Buffer | null)?.length ?? 0;
      await wait(ROUND_MS);
      quiet = sent - earlier.sent > 10 * STREAMS * ROUND_BYTES ? 0 : quiet + 1;
    }
    const after = await measure();
    expect(sent).toBeLessThan((STREAMS * STREAM_BYTES) / 2);
    // What was sampled so far is held until it is recorded; the bytes around it are not.
    expect(after.held - before.held).toBeLessThan(2 * STREAMS * MIB);
    for (const reader of readers) reader.destroy();
    sidecar.child.kill("SIGTERM");
    expect((await sidecar.ended).code).toBe(0);
    const turns = turnsOf(readTrajectory(join(out, "t1"), { mode: "strict" }));
    expect(turns).toHaveLength(STREAMS);
    expect(turns.every(({ record }) => record.defects.includes("client_gone"))).toBe(true);
  });
});
