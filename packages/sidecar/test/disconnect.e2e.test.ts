import { request } from "node:http";
import { nodeDisk } from "@tito/format";
import { differencesToEngine } from "@tito/testkit";
import { describe, expect, it } from "vitest";
import { engineLog, engineTest, type Started, scriptedEngine, startTestSidecar, turnsOf } from "./harness.js";

const WORDS = "one two three four five";
const RULES = [
  { match: { lastContains: "call" }, reply: { content: "so", tool_calls: [{ name: "look", arguments: { a: "bc" } }] } },
  { match: { lastContains: "hello" }, reply: { content: WORDS } },
];
const SCHEMA = { type: "object", properties: { a: { type: "string" } } };

/** How each dialect asks, and which of its events carries one delta. */
const DIALECTS = [
  {
    name: "chat",
    path: "/v1/chat/completions",
    body: (text: string) => ({
      messages: [{ role: "user", content: text }],
      tools: [{ type: "function", function: { name: "look", parameters: SCHEMA } }],
    }),
    delta: /"content":"[^"]|"arguments":"[^"]/,
  },
  {
    name: "responses",
    path: "/v1/responses",
    body: (text: string) => ({
      input: text,
      tools: [{ type: "function", name: "look", parameters: SCHEMA }],
    }),
    delta: /^event: response\.(output_text|function_call_arguments)\.delta/m,
  },
  {
    name: "messages",
    path: "/v1/messages",
    body: (text: string) => ({
      max_tokens: 500,
      messages: [{ role: "user", content: text }],
      tools: [{ name: "look", input_schema: SCHEMA }],
    }),
    delta: /^event: content_block_delta/m,
  },
] as const;

type Dialect = (typeof DIALECTS)[number];

interface Reading {
  /** Whole events so far. */
  events: string[];
  /** Resolves when `done` holds for the events so far, or the stream has ended. */
  until(done: (events: readonly string[]) => boolean): Promise<void>;
  close(): void;
}

/** One streamed call over a socket of its own. */
function call(started: Started, dialect: Dialect, text: string): Reading {
  const body = JSON.stringify({ model: "policy", stream: true, ...dialect.body(text) });
  const events: string[] = [];
  const watchers = new Set<() => void>();
  let over = false;
  const changed = (): void => {
    for (const watcher of watchers) watcher();
  };
  const end = (): void => {
    over = true;
    changed();
  };
  const outgoing = request(
    started.url.replace(/\/v1$/, dialect.path),
    {
      method: "POST",
      agent: false,
      headers: { "content-type": "application/json", authorization: `Bearer ${started.key}` },
    },
    (response) => {
      let rest = "";
      response.setEncoding("utf8");
      response.on("data", (bytes: string) => {
        const parts = (rest + bytes).split("\n\n");
        rest = parts.pop()!;
        events.push(...parts);
        changed();
      });
      response.on("end", end);
      response.on("error", end);
    },
  );
  outgoing.on("error", end);
  outgoing.end(body);
  const until = (done: (events: readonly string[]) => boolean): Promise<void> =>
    new Promise((resolve) => {
      const check = (): void => {
        if (!over && !done(events)) return;
        watchers.delete(check);
        resolve();
      };
      watchers.add(check);
      check();
    });
  return { events, until, close: () => outgoing.destroy() };
}

const openSockets = (): number =>
  process.getActiveResourcesInfo().filter((kind) => kind.startsWith("TCPSocket")).length;

describe.each(DIALECTS)("a harness of the $name dialect that goes", (dialect) => {
  const deltas = (events: readonly string[]): number => events.filter((event) => dialect.delta.test(event)).length;

  it.each([
    ["hello", WORDS],
    ["call", "so"],
  ])(
    "behind any token of an answer to %s: all that was sampled is on record, the engine is stopped, nothing stays open (B5.14)",
    async (text, content) => {
      const engine = await scriptedEngine(RULES);
      const started = await startTestSidecar(engine, { orphanGraceMs: 0, sealTimeoutMs: 60_000 });
      const whole = call(started, dialect, text);
      await whole.until(() => false);
      const all = (await engineLog(engine))[0]!;
      const tokens = all.sampled_ids.length;
      expect(tokens).toBeGreaterThan(5);
      await engineTest(engine, "faults", {
        faults: Array.from({ length: tokens }, (_, held) => ({
          on: { path: "/v1/chat/completions", match: text },
          fault: { kind: "hang_after", tokens: held },
        })),
      });
      let sockets = 0;
      for (let held = 0; held < tokens; held += 1) {
        const reading = call(started, dialect, text);
        await engineTest(engine, "wait", { gauge: "hanging", atLeast: 1 });
        // What the engine sent before it was held comes as it is; then the harness goes.
        if (held > 0) await reading.until((events) => events.length > 0);
        const textOnly = text === "hello";
        if (textOnly && held > 0) await reading.until((events) => deltas(events) >= held);
        reading.close();
        await engineTest(engine, "wait", { gauge: "aborted", atLeast: held + 1 });
        await started.logged("failed", held + 1);
        // The first round opens what is kept open: connections that wait for the next call.
        if (held === 1) sockets = openSockets();
      }
      expect(openSockets()).toBeLessThanOrEqual(sockets);
      // A call that was still in flight would hold the seal for a minute.
      const log = await started.sealed();
      const [first, ...cut] = turnsOf(log);
      expect(first!.record.message.content).toBe(content);
      expect(cut.map((turn) => turn.sampledIds)).toEqual(
        Array.from({ length: tokens - 1 }, (_, index) => all.sampled_ids.slice(0, index + 1)),
      );
      expect(
        cut.every(({ record }) => record.defects.includes("client_gone") && record.finish_reason === "abort"),
      ).toBe(true);
      expect(log.uncaptured).toMatchObject([{ reason: "client_gone", lost_tokens: false }]);
      expect([...log.deliveries.values()].flat().map((one) => one.outcome)).toEqual([
        "delivered",
        ...Array.from({ length: tokens }, () => "failed"),
      ]);
      expect(differencesToEngine(log, await engineLog(engine))).toEqual([]);
    },
  );

  it("behind any event that comes before the end is held: the whole answer is on record, and waits for a retry (B5.14)", async () => {
    let hold: Promise<void> | null = null;
    let synced = (): void => undefined;
    const disk = {
      ...nodeDisk,
      fdatasync: async (fd: number) => {
        synced();
        await hold;
        await nodeDisk.fdatasync(fd);
      },
    };
    const engine = await scriptedEngine(RULES);
    const started = await startTestSidecar(engine, { sealTimeoutMs: 60_000 }, { disk });
    const whole = call(started, dialect, "hello");
    await whole.until(() => false);
    const live = whole.events.findLastIndex((event) => dialect.delta.test(event)) + 1;
    expect(live).toBeGreaterThan(3);
    for (let index = 1; index <= live; index += 1) {
      let open = (): void => undefined;
      hold = new Promise<void>((resolve) => {
        open = resolve;
      });
      const syncing = new Promise<void>((resolve) => {
        synced = resolve;
      });
      const reading = call(started, dialect, "hello");
      await reading.until((events) => events.length >= index);
      await syncing;
      reading.close();
      await started.logged("orphaned", index);
      open();
      hold = null;
      await started.logged("failed", index);
      // The retry is served from the record, and takes its slot.
      const retry = call(started, dialect, "hello");
      await retry.until(() => false);
      expect(retry.events.length).toBeGreaterThan(live);
    }
    const log = await started.sealed();
    expect(turnsOf(log)).toHaveLength(1 + live);
    expect(log.replays).toHaveLength(live);
    expect(log.manifest?.status).toBe("complete");
    expect(turnsOf(log).every(({ record }) => record.defects.length === 0)).toBe(true);
    expect(differencesToEngine(log, await engineLog(engine))).toEqual([]);
  });

  it("and whose retry waits for the answer when the trajectory is sealed: it gets the answer, and that is on record (O.8)", async () => {
    const engine = await scriptedEngine(RULES);
    const started = await startTestSidecar(engine, { sealTimeoutMs: 60_000 });
    await engineTest(engine, "faults", {
      on: { path: "/v1/chat/completions" },
      fault: { kind: "hang_after", tokens: 3 },
    });
    const first = call(started, dialect, "hello");
    await engineTest(engine, "wait", { gauge: "hanging", atLeast: 1 });
    first.close();
    await started.logged("orphaned");
    const retry = call(started, dialect, "hello");
    await started.logged("adopted");
    const sealing = started.sealed();
    const late = call(started, dialect, "hello");
    await late.until(() => false);
    expect(late.events).toEqual([]);
    await engineTest(engine, "release", {});
    await retry.until(() => false);
    expect(retry.events.filter((event) => dialect.delta.test(event)).length).toBeGreaterThan(0);
    const log = await sealing;
    const [turn] = turnsOf(log);
    expect(log.deliveries.get(turn!.record.call_id)).toMatchObject([{ outcome: "failed" }, { outcome: "delivered" }]);
    expect(log.manifest?.status).toBe("complete");
  });
});
