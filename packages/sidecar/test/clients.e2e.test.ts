import { connect } from "node:net";
import { nodeDisk } from "@tito/format";
import { differencesToEngine, FaultDisk } from "@tito/testkit";
import { describe, expect, it } from "vitest";
import {
  engineLog,
  engineTest,
  postChat,
  readEvents,
  scriptedEngine,
  startTestSidecar,
  turnsOf,
  user,
} from "./harness.js";

const RULES = [{ match: { lastContains: "hello" }, reply: { content: "one two three four five six seven" } }];
const CHAT = { path: "/v1/chat/completions", match: "hello" };
const HELLO = { messages: [user("hello")] };
const STREAM = { ...HELLO, stream: true };

async function start(options = {}, hooks = {}) {
  const engine = await scriptedEngine(RULES);
  return { engine, ...(await startTestSidecar(engine, options, hooks)) };
}

/** Holds the next call of the engine after `tokens` tokens. */
const hold = (engine: { url: string }, tokens: number) =>
  engineTest(engine, "faults", { on: CHAT, fault: { kind: "hang_after", tokens } });
const untilHeld = (engine: { url: string }) => engineTest(engine, "wait", { gauge: "hanging", atLeast: 1 });
const release = (engine: { url: string }) => engineTest(engine, "release", {});

describe("a stream is live", () => {
  it("deltas arrive while the engine is held in mid-answer (peers C8.56)", async () => {
    const { engine, ...started } = await start();
    await hold(engine, 5);
    const events = readEvents(await postChat(started, STREAM));
    const seen: string[] = [];
    while (!seen.join("").includes('"content":"t"')) seen.push((await events.next()).value as string);
    await untilHeld(engine);
    await release(engine);
    for await (const event of events) seen.push(event);
    expect(seen.at(-1)).toBe("data: [DONE]");
  });

  it("its end waits until the record is durable", async () => {
    let open: () => void = () => undefined;
    let synced: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    const syncing = new Promise<void>((resolve) => {
      synced = resolve;
    });
    let armed = false;
    const disk = {
      ...nodeDisk,
      fdatasync: async (fd: number) => {
        if (armed) {
          synced();
          await gate;
        }
        await nodeDisk.fdatasync(fd);
      },
    };
    const { engine: _engine, ...started } = await start({}, { disk });
    armed = true;
    const events = readEvents(await postChat(started, STREAM));
    const seen: string[] = [];
    await syncing;
    // Everything live is here or under way; the finish is not, because the disk has not answered.
    while (!seen.join("").includes('"content":"n"},"logprobs":null,"finish_reason":null'))
      seen.push((await events.next()).value as string);
    expect(seen.join("")).not.toMatch(/"finish_reason":"|DONE/);
    open();
    for await (const event of events) seen.push(event);
    expect(seen.join("")).toMatch(/"finish_reason":"stop"/);
    expect(seen.at(-1)).toBe("data: [DONE]");
  });

  it("is kept alive while the engine is silent, before and after its first byte", async () => {
    const { engine, ...started } = await start({ keepaliveMs: 30 });
    await engineTest(engine, "faults", { on: CHAT, fault: { kind: "hang_before_headers" } });
    const events = readEvents(await postChat(started, STREAM));
    expect((await events.next()).value).toBe(": ping");
    expect((await events.next()).value).toBe(": ping");
    await release(engine);
    const rest: string[] = [];
    for await (const event of events) rest.push(event);
    expect(rest.at(-1)).toBe("data: [DONE]");
  });
});

describe("a harness that goes", () => {
  it("in mid-stream leaves an engine that works on, and a retry gets that answer, without a second sample", async () => {
    const { engine, ...started } = await start();
    await hold(engine, 5);
    const first = new AbortController();
    const response = await postChat(started, STREAM, {}, first.signal);
    const events = readEvents(response);
    await events.next();
    await untilHeld(engine);
    first.abort();
    await started.logged("orphaned");
    const retry = postChat(started, STREAM, { "x-stainless-retry-count": "1" });
    await started.logged("adopted");
    await release(engine);
    const text = await (await retry).text();
    expect(text).toContain("[DONE]");
    const log = await started.sealed();
    const turns = turnsOf(log);
    expect(turns).toHaveLength(1);
    expect(log.replays).toMatchObject([{ call_id: turns[0]!.record.call_id, matched_by: "body" }]);
    expect(log.deliveries.get(turns[0]!.record.call_id)?.map((one) => one.outcome)).toEqual(["failed", "delivered"]);
    expect(differencesToEngine(log, await engineLog(engine))).toEqual([]);
  });

  it("gets its answer later in the other shape: streamed first, a body on retry (peers C7.52)", async () => {
    const { engine, ...started } = await start();
    await hold(engine, 5);
    const first = new AbortController();
    await readEvents(await postChat(started, STREAM, {}, first.signal)).next();
    await untilHeld(engine);
    first.abort();
    await started.logged("orphaned");
    await release(engine);
    await started.logged("failed");
    const reply = (await (await postChat(started, HELLO)).json()) as {
      object: string;
      choices: { message: { content: string } }[];
      usage: { completion_tokens: number };
    };
    expect(reply.object).toBe("chat.completion");
    expect(reply.choices[0]!.message.content).toBe("one two three four five six seven");
    const log = await started.sealed();
    expect(turnsOf(log)).toHaveLength(1);
    expect(reply.usage.completion_tokens).toBe(turnsOf(log)[0]!.sampledIds.length);
  });

  it("for longer than the grace has its call aborted, and what was sampled is recorded (peers C7.54)", async () => {
    const { engine, ...started } = await start({ orphanGraceMs: 0 });
    await hold(engine, 5);
    const first = new AbortController();
    await readEvents(await postChat(started, STREAM, {}, first.signal)).next();
    await untilHeld(engine);
    first.abort();
    await started.logged("failed");
    const log = await started.sealed();
    const [turn] = turnsOf(log);
    expect(turn!.record).toMatchObject({ finish_reason: "abort", defects: ["client_gone"] });
    expect(turn!.sampledIds).toHaveLength(5);
    expect(log.deliveries.get(turn!.record.call_id)).toMatchObject([{ outcome: "failed" }]);
  });

  it("closes its socket right after the last byte: that is a delivery", async () => {
    const { engine: _engine, ...started } = await start();
    const { hostname, port, pathname } = new URL(started.url);
    const body = JSON.stringify({ model: "policy", ...STREAM });
    const socket = connect(Number(port), hostname);
    socket.write(
      `POST ${pathname}/chat/completions HTTP/1.1\r\nhost: ${hostname}:${port}\r\nauthorization: Bearer ${started.key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    let text = "";
    for await (const bytes of socket) {
      text += String(bytes);
      if (text.includes("[DONE]")) break;
    }
    socket.destroy();
    const log = await started.sealed();
    expect([...log.deliveries.values()]).toMatchObject([[{ outcome: "delivered" }]]);
  });

  it("asks the same question again after a delivered answer: that is a new sample", async () => {
    const { engine: _engine, ...started } = await start();
    for (let call = 0; call < 2; call++) await (await postChat(started, HELLO)).text();
    const log = await started.sealed();
    expect(turnsOf(log)).toHaveLength(2);
    expect(log.replays).toEqual([]);
  });

  it("asks the same question twice at once: a call with a live harness is never joined", async () => {
    const { engine, ...started } = await start();
    await hold(engine, 3);
    const first = postChat(started, STREAM);
    await untilHeld(engine);
    await (await postChat(started, STREAM)).text();
    await release(engine);
    await (await first).text();
    const log = await started.sealed();
    expect(turnsOf(log)).toHaveLength(2);
    expect(differencesToEngine(log, await engineLog(engine))).toEqual([]);
  });
});

describe("a seal", () => {
  it("refuses new calls, waits for those in flight, and keeps what they had when the time is up", async () => {
    const { engine, ...started } = await start({ sealTimeoutMs: 50 });
    await hold(engine, 5);
    const events = readEvents(await postChat(started, STREAM));
    await untilHeld(engine);
    const closing = started.sidecar.close("test");
    const late = await postChat(started, HELLO);
    expect(late.status).toBe(410);
    expect(late.headers.get("x-should-retry")).toBe("false");
    const seen: string[] = [];
    for await (const event of events) seen.push(event);
    expect(seen.join("")).toContain('"code":"trajectory_sealed"');
    const [report] = await closing;
    expect(report).toMatchObject({ turns: 1, trajectory_id: "t1" });
    const [turn] = turnsOf(await started.sealed());
    expect(turn!.record.defects).toEqual(["aborted_by_seal"]);
    expect(turn!.sampledIds).toHaveLength(5);
  });

  it("over HTTP needs the owner's key and answers with the chain head", async () => {
    const { engine: _engine, ...started } = await start({
      secrets: { apiKey: "harness-key", ownerKey: "owner-key-1" },
    });
    await (await postChat(started, HELLO)).text();
    const seal = (key: string) =>
      fetch(started.url.replace(/\/v1$/, "/seal"), { method: "POST", headers: { authorization: `Bearer ${key}` } });
    expect((await seal("harness-key")).status).toBe(401);
    const answer = await seal("owner-key-1");
    expect(answer.status).toBe(200);
    const report = (await answer.json()) as { head: { digest: string; bytes: number }; turns: number; status: string };
    expect(report).toMatchObject({ turns: 1, status: "complete" });
    expect(report.head.digest).toMatch(/^[0-9a-f]{64}$/);
    expect((await postChat(started, HELLO)).status).toBe(410);
  });
});

describe("a disk that fails", () => {
  it("withholds the answer, degrades the trajectory, and later calls are refused at once and for good", async () => {
    const disk = new FaultDisk();
    const { engine, ...started } = await start({}, { disk });
    await (await postChat(started, HELLO)).text();
    disk.setFault({ error: "ENOSPC", at: 2, calls: ["writev"], forever: true });
    const failed = await postChat(started, HELLO);
    expect(failed.status).toBe(503);
    expect(failed.headers.get("x-should-retry")).toBe("false");
    expect(await failed.text()).not.toContain("seven");
    expect(await (await fetch(`${started.sidecar.origin}/readyz`)).json()).toMatchObject({ status: "not_ready" });
    const before = (await engineLog(engine)).length;
    expect((await postChat(started, HELLO)).status).toBe(503);
    expect((await engineLog(engine)).length).toBe(before);
    disk.setFault(null);
  });

  it("in the sync ends a stream in an error: the finish is never sent", async () => {
    const disk = new FaultDisk();
    const { engine: _engine, ...started } = await start({}, { disk });
    disk.setFault({ error: "EIO", at: 1, calls: ["fdatasync"], forever: true });
    const text = await (await postChat(started, STREAM)).text();
    expect(text).not.toMatch(/"finish_reason":"/);
    expect(text).toContain('"error"');
    disk.setFault(null);
  });

  it("lets calls go on, flagged, where the user chose so", async () => {
    const disk = new FaultDisk();
    const { engine: _engine, ...started } = await start({ onUncaptured: "flag" }, { disk });
    disk.setFault({ error: "EIO", at: 1, calls: ["fdatasync"], forever: true });
    for (let call = 0; call < 2; call++) {
      const response = await postChat(started, HELLO);
      expect(response.status).toBe(200);
      expect(response.headers.get("x-tito-uncaptured")).toBe("capture_degraded");
    }
    disk.setFault(null);
  });
});
