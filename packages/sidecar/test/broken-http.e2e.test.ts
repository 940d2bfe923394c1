/** What a harness and the record see of an engine that breaks HTTP (O.101), and of a connection that it closes under a call (O.102). */
import type { Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { askIn, CALLS, DIALECTS } from "./every-dialect.js";
import { scriptedEngine, serverBefore, startTestSidecar, turnsOf } from "./harness.js";
import { useBundle } from "./renderer-bundle.js";

const bundle = useBundle({ certified: false });
const RULES = [{ match: { lastContains: "hello" }, reply: { content: "one two three" } }];
const SAMPLES = /^\/(v1\/(chat\/)?completions|inference\/v1\/generate)$/;

/** An engine that answers calls, not probes, by hand once it is armed: each time, or the first time only. */
async function byHand(answer: (socket: Socket) => void, times = Number.POSITIVE_INFINITY) {
  const engine = await scriptedEngine(RULES);
  const state = { armed: false, asked: 0 };
  const front = await serverBefore(engine, (request) => {
    if (!state.armed || !SAMPLES.test(request.url ?? "") || request.headers["x-tito-probe"] !== undefined) return false;
    state.asked += 1;
    if (state.asked > times) return false;
    request.resume();
    answer(request.socket);
    return true;
  });
  return { front, state };
}

const raw = (text: string) => (socket: Socket) => void socket.end(text);
const TWICE = raw(
  "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
);

describe.each(["engine", "bundle"])("a doubled Transfer-Encoding, rendered by the %s", (renderer) => {
  it.each(CALLS)(
    "is told in %s (stream: %s) with the engine and the cause, and is on record (O.101)",
    async (dialect, stream) => {
      const { front, state } = await byHand(TWICE);
      const started = await startTestSidecar(front, renderer === "engine" ? {} : { renderer: bundle.dir });
      state.armed = true;
      const response = await askIn(dialect, started, { stream });
      const said = await response.text();
      expect(said).toContain(`the engine at ${new URL(front.url).host}`);
      expect(said).toContain("Transfer-Encoding 2 times (chunked, chunked)");
      if (!stream) expect([response.status, response.headers.get("x-should-retry")]).toEqual([503, "false"]);
      expect(state.asked).toBe(1);
      const log = await started.sealed();
      expect(log.uncaptured).toMatchObject([{ detail: expect.stringContaining("Transfer-Encoding 2 times") }]);
    },
  );
});

it.each([
  [
    "both a length and chunks",
    "content-length: 2\r\ntransfer-encoding: chunked",
    "2\r\n{}\r\n0\r\n\r\n",
    "present with",
  ],
  [
    "a chunk without a size",
    "content-type: application/json\r\ntransfer-encoding: chunked",
    "zz\r\n{}\r\n",
    "chunk size",
  ],
])(
  "%s is asked again, each time on record, and told with its cause in the end (O.101)",
  async (_words, headers, body, cause) => {
    const { front, state } = await byHand(raw(`HTTP/1.1 200 OK\r\n${headers}\r\n\r\n${body}`));
    const started = await startTestSidecar(front);
    state.armed = true;
    const response = await askIn("chat", started);
    expect(response.status).toBe(503);
    const said = await response.text();
    expect(said).toContain(`the engine at ${new URL(front.url).host}`);
    expect(said).toContain(cause);
    const log = await started.sealed();
    expect(log.uncaptured).toHaveLength(state.asked);
    expect(log.intents.size).toBe(state.asked);
  },
);

it.each(DIALECTS)(
  "a connection that the engine closes under a %s call: asked again at once, and both times are on record (O.102)",
  async (dialect) => {
    const { front, state } = await byHand((socket) => void socket.resetAndDestroy(), 1);
    const started = await startTestSidecar(front);
    // The connection is one that was kept open.
    await (await askIn(dialect, started)).text();
    state.armed = true;
    const response = await askIn(dialect, started);
    expect(response.status).toBe(200);
    expect(await response.text()).toContain("one two three");
    expect(state.asked).toBe(2);
    const log = await started.sealed();
    expect(turnsOf(log)).toHaveLength(2);
    expect(log.intents.size).toBe(3);
    expect(log.uncaptured).toMatchObject([
      { reason: "engine_refused", lost_tokens: false, detail: expect.stringContaining("may have begun to answer") },
    ]);
    expect(log.manifest?.status).toBe("complete");
  },
);
