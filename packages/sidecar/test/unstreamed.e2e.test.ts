/** Calls that ask for one body: sampled as a stream all the same, kept alive, and an error is never half a body. */
import { describe, expect, it } from "vitest";
import {
  engineLog,
  engineTest,
  postChat,
  readEvents,
  scriptedEngine,
  serverBefore,
  signal,
  startTestSidecar,
  turnsOf,
  user,
} from "./harness.js";
import { useBundle } from "./renderer-bundle.js";

const RULES = [
  { match: { lastContains: "hello" }, reply: { content: "one two three four five six seven" } },
  {
    match: { lastContains: "call" },
    reply: { reasoning: "why ", content: "now ", tool_calls: [{ name: "look", arguments: '{"at": 1}' }] },
  },
];
const HELLO = { messages: [user("hello")] };
const TOOLS = [{ type: "function", function: { name: "look", parameters: { type: "object" } } }];
const bundle = useBundle({ certified: false });
const sources = [
  { name: "engine source", options: () => ({}) },
  { name: "renderer source", options: () => ({ renderer: bundle.dir }) },
];

const untilHeld = (engine: { url: string }) => engineTest(engine, "wait", { gauge: "hanging", atLeast: 1 });
const release = (engine: { url: string }) => engineTest(engine, "release", {});

/** The engine without vLLM's token route, which answers in whole bodies: ids go to its completions route, which streams. */
const streamingEngine = (engine: { url: string }) =>
  serverBefore(engine, (request, response) => {
    if (request.url !== "/inference/v1/generate") return false;
    response.writeHead(404).end();
    return true;
  });

/** What had come in when the call was aborted: the beginning of what the engine sampled, and no id that it did not sample. */
async function expectPartial(ids: readonly number[], engine: { url: string }): Promise<void> {
  const [entry] = await engineLog(engine);
  expect(entry!.sampled_ids).toHaveLength(5);
  expect(ids.length).toBeGreaterThan(0);
  expect(entry!.sampled_ids.slice(0, ids.length)).toEqual(ids);
}

describe.each(sources)("an unstreamed call ($name)", ({ options }) => {
  const hold = (engine: { url: string }, tokens: number) =>
    engineTest(engine, "faults", { fault: { kind: "hang_after", tokens } });

  async function start(more = {}) {
    const engine = await scriptedEngine(RULES);
    return { engine, ...(await startTestSidecar(await streamingEngine(engine), { ...options(), ...more })) };
  }

  it("whose harness goes for longer than the grace leaves what was sampled (peers C7.54)", async () => {
    const { engine, ...started } = await start({ orphanGraceMs: 0 });
    await hold(engine, 5);
    const gone = new AbortController();
    const call = postChat(started, HELLO, {}, gone.signal).catch(() => "gone");
    await untilHeld(engine);
    gone.abort();
    expect(await call).toBe("gone");
    await started.logged("failed");
    const log = await started.sealed();
    expect(log.uncaptured).toEqual([]);
    const [turn] = turnsOf(log);
    expect(turn!.record).toMatchObject({ finish_reason: "abort", defects: ["client_gone"], stream: "none" });
    await expectPartial(turn!.sampledIds, engine);
  });

  it("that a seal cuts off leaves what was sampled", async () => {
    const { engine, ...started } = await start({ sealTimeoutMs: 50 });
    await hold(engine, 5);
    const call = postChat(started, HELLO);
    await untilHeld(engine);
    await started.sidecar.close("test");
    expect((await call).status).toBe(410);
    const [turn] = turnsOf(await started.sealed());
    expect(turn!.record.defects).toEqual(["aborted_by_seal"]);
    await expectPartial(turn!.sampledIds, engine);
  });

  it("is kept alive by white space once the engine works on it, and stays one JSON body", async () => {
    const { engine, ...started } = await start({ keepaliveMs: 30 });
    await hold(engine, 5);
    const response = await postChat(started, HELLO);
    expect(response.headers.get("content-type")).toBe("application/json");
    const chunks = response.body!.pipeThrough(new TextDecoderStream())[Symbol.asyncIterator]();
    let text = "";
    while (text.length < 2) text += (await chunks.next()).value;
    expect(text.trim()).toBe("");
    await release(engine);
    for (let next = await chunks.next(); next.done !== true; next = await chunks.next()) text += next.value;
    const reply = JSON.parse(text) as { object: string; choices: { message: { content: string } }[] };
    expect(reply.object).toBe("chat.completion");
    expect(reply.choices[0]!.message.content).toBe("one two three four five six seven");
    const log = await started.sealed();
    expect([...log.deliveries.values()]).toMatchObject([[{ outcome: "delivered", status: 200 }]]);
  });

  it("that fails after the first white space is broken off: never a 200 that holds an error", async () => {
    const { engine, ...started } = await start({ keepaliveMs: 20, sealTimeoutMs: 50 });
    await hold(engine, 5);
    const response = await postChat(started, HELLO);
    const broken = expect(response.text()).rejects.toThrow();
    await started.sidecar.close("test");
    await broken;
    const log = await started.sealed();
    expect(turnsOf(log)[0]!.record.defects).toEqual(["aborted_by_seal"]);
  });
});

describe("the engine's refusal of an unstreamed call", () => {
  it("keeps its status however long it took: no byte goes out before the engine has taken the call", async () => {
    const engine = await scriptedEngine(RULES);
    const [waiting, answer] = signal();
    const [reached, asked] = signal();
    const slow = await serverBefore(engine, (request, response) => {
      if (request.url !== "/v1/chat/completions" || request.headers["x-tito-probe"] !== undefined) return false;
      asked();
      void waiting.then(() => {
        response.writeHead(400, { "content-type": "application/json" });
        response.end('{"error":{"message":"no such thing","type":"BadRequestError","param":null,"code":400}}');
      });
      return true;
    });
    const started = await startTestSidecar(slow, { keepaliveMs: 1 });
    const call = postChat(started, HELLO);
    await reached;
    // Meanwhile a stream is kept alive again and again: that is how long the other call waits.
    const events = readEvents(await postChat(started, { ...HELLO, stream: true }));
    for (let pings = 0; pings < 5; pings++) expect((await events.next()).value).toBe(": ping");
    answer();
    const response = await call;
    expect(response.status).toBe(400);
    expect(await response.text()).toContain("no such thing");
  });
});

/** What two bodies must share: all but ids made for each call, times, cache hits, and members that say nothing. */
function comparable(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(comparable);
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).filter(
    ([key, member]) => !["id", "created", "cached_tokens"].includes(key) && member !== null,
  );
  return Object.fromEntries(members.map(([key, member]) => [key, comparable(member)]));
}

describe("the body that a stream adds up to", () => {
  it("is the one that the engine itself would have sent", async () => {
    const engine = await scriptedEngine(RULES, { promptTokensDetails: true });
    const started = await startTestSidecar(engine);
    const body = { messages: [user("call")], tools: TOOLS, seed: 3 };
    for (const more of [{}, { logprobs: true, top_logprobs: 2, return_token_ids: true }]) {
      const ours = (await (await postChat(started, { ...body, ...more })).json()) as Record<string, unknown>;
      const direct = await fetch(`${engine.url}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ model: "policy", ...body, ...more }),
      });
      expect(comparable(ours)).toEqual(comparable((await direct.json()) as Record<string, unknown>));
    }
  });

  it("is asked for whole where the engine can not stream what the harness wants", async () => {
    const engine = await scriptedEngine(RULES);
    const started = await startTestSidecar(engine);
    const reply = (await (await postChat(started, { ...HELLO, prompt_logprobs: 0 })).json()) as Record<string, unknown>;
    expect(reply.prompt_logprobs).toBeInstanceOf(Array);
    expect(turnsOf(await started.sealed())).toHaveLength(1);
  });
});
