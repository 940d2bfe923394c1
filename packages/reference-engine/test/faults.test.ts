import { describe, expect, it } from "vitest";
import { engines, eventsOf, get, post, streamed } from "./support/running.js";

const { start, script } = engines();
const MESSAGES = [{ role: "user", content: "go" }];
const REPLY = [{ reply: { content: "one two three four five" } }];
const EVIDENCE = { logprobs: true, return_token_ids: true };
type Engine = Awaited<ReturnType<typeof start>>;

async function faulty(fault: object, more: object = {}): Promise<Engine> {
  const engine = await start({ policy: script(REPLY) });
  const queued = await post(`${engine.url}/test/faults`, { fault, ...more });
  expect(queued.status).toBe(200);
  return engine;
}

const ask = (engine: Engine, more: object = {}) =>
  post(`${engine.url}/v1/chat/completions`, { messages: MESSAGES, ...EVIDENCE, ...more });

/** What a client receives of a stream, and whether it broke. */
async function stream(engine: Engine): Promise<{ text: string; broken: boolean }> {
  const response = await fetch(`${engine.url}/v1/chat/completions`, {
    method: "POST",
    body: JSON.stringify({ messages: MESSAGES, stream: true, stream_options: { include_usage: true }, ...EVIDENCE }),
    headers: { "content-type": "application/json" },
  });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  try {
    for (let chunk = await reader?.read(); chunk?.done === false; chunk = await reader?.read()) text += chunk.value;
  } catch {
    return { text, broken: true };
  }
  return { text, broken: false };
}

describe("faults on request", () => {
  it("status: the status, body and Retry-After asked for, as often as asked for", async () => {
    const engine = await faulty({ kind: "status", status: 429, retryAfter: 3 }, { times: 2 });
    for (const _ of [1, 2]) {
      const { status, headers, body } = await ask(engine);
      expect([status, headers.get("retry-after"), body.error.code]).toEqual([429, "3", 429]);
    }
    expect((await ask(engine)).status).toBe(200);
    await post(`${engine.url}/test/faults`, {
      faults: [{ fault: { kind: "status", status: 503, body: { detail: "x" } } }],
    });
    expect((await ask(engine)).body).toEqual({ detail: "x" });
    expect((await get(`${engine.url}/test/log`)).body.entries).toHaveLength(1);
  });

  it("befall only the requests they are for", async () => {
    const engine = await faulty(
      { kind: "status", status: 500 },
      { on: { path: "/v1/chat/completions", match: "special", nth: 2 } },
    );
    const special = { messages: [{ role: "user", content: "special" }] };
    expect((await post(`${engine.url}/v1/completions`, { prompt: "special" })).status).toBe(200);
    expect([
      (await ask(engine)).status,
      (await ask(engine, special)).status,
      (await ask(engine, special)).status,
    ]).toEqual([200, 200, 500]);
    await post(`${engine.url}/test/faults`, { fault: { kind: "empty_200" } });
    expect((await get(`${engine.url}/test/faults`)).body.pending).toHaveLength(1);
    const cleared = await fetch(`${engine.url}/test/faults`, { method: "DELETE" });
    expect([cleared.status, await cleared.json()]).toEqual([200, { pending: [] }]);
    expect((await ask(engine)).body.choices).toHaveLength(1);
  });

  it("are queued, and answers asked for, by a body that comes in chunks without a length", async () => {
    const engine = await start({ policy: script(REPLY) });
    const chunked = (path: string, body: object) =>
      fetch(`${engine.url}${path}`, {
        method: "POST",
        body: new Blob([JSON.stringify(body)]).stream(),
        duplex: "half",
      } as RequestInit);
    expect((await chunked("/test/faults", { fault: { kind: "status", status: 503 } })).status).toBe(200);
    const statuses = [0, 0].map(async () => (await chunked("/v1/chat/completions", { messages: MESSAGES })).status);
    expect((await Promise.all(statuses)).sort()).toEqual([200, 503]);
  });

  it("empty_200 and html_200", async () => {
    const engine = await faulty({ kind: "empty_200" });
    expect(await ask(engine)).toMatchObject({ status: 200, body: "" });
    await post(`${engine.url}/test/faults`, { fault: { kind: "html_200" } });
    const response = await fetch(`${engine.url}/v1/chat/completions`, { method: "POST", body: "{}" });
    expect([response.status, response.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
    expect(await response.text()).toContain("<html>");
  });

  it("befall routes that sample nothing when they are named", async () => {
    const engine = await faulty({ kind: "status", status: 503 }, { on: { path: "/v1/models" } });
    expect((await get(`${engine.url}/health`)).status).toBe(200);
    expect((await get(`${engine.url}/v1/models`)).status).toBe(503);
    expect((await get(`${engine.url}/v1/models`)).status).toBe(200);
  });

  it("with several choices, an error event is the last thing before [DONE]", async () => {
    const engine = await faulty({ kind: "error_event", afterTokens: 2 });
    const events = await streamed(`${engine.url}/v1/chat/completions`, { messages: MESSAGES, n: 3 });
    expect(events.findIndex((event) => "error" in Object(event))).toBe(events.length - 2);
    expect(events.at(-1)).toBe("[DONE]");
    expect((await ask(engine)).status).toBe(200);
  });

  it("slow_tokens: nothing is lost", async () => {
    const engine = await faulty({ kind: "slow_tokens", delayMs: 1 });
    expect((await ask(engine)).body.choices[0].message.content).toBe("one two three four five");
  });

  it.each([
    ["rst", true],
    ["fin", true],
    ["end", false],
  ])("cut_stream %s: part of the answer and no finish", async (how, broken) => {
    const engine = await faulty({ kind: "cut_stream", afterTokens: 4, how }, { times: 2 });
    const got = await stream(engine);
    expect(got.broken).toBe(broken);
    expect(got.text).not.toContain("[DONE]");
    expect(got.text).not.toContain('"finish_reason":"stop"');
    if (how !== "rst") expect(eventsOf(got.text).flatMap((event) => event.choices[0].token_ids ?? [])).toHaveLength(4);
    const whole = await fetch(`${engine.url}/v1/chat/completions`, {
      method: "POST",
      body: JSON.stringify({ messages: MESSAGES }),
    }).then(
      (response) => response.text(),
      () => "",
    );
    expect(whole).toBe("");
    const { entries } = (await get(`${engine.url}/test/log`)).body;
    expect(entries[0]).toMatchObject({ finish: null, fault: "cut_stream" });
    expect(entries[0].sampled_ids).toHaveLength(4);
  });

  it("abort: status 200, finish reason abort, the ids so far", async () => {
    const engine = await faulty({ kind: "abort", afterTokens: 3 }, { times: 3 });
    const { status, body } = await ask(engine);
    expect([
      status,
      body.choices[0].finish_reason,
      body.choices[0].token_ids.length,
      body.usage.completion_tokens,
    ]).toEqual([200, "abort", 3, 3]);
    const events = eventsOf((await stream(engine)).text);
    expect(events.at(-1)).toBe("[DONE]");
    expect(events.at(-3).choices[0]).toMatchObject({ finish_reason: "abort", delta: {} });
    const short = await ask(engine, { max_tokens: 2 });
    expect(short.body.choices[0]).toMatchObject({ finish_reason: "abort" });
    expect(short.body.choices[0].token_ids).toHaveLength(2);
  });

  it("missing_logprobs, short_logprobs and nan_logprobs", async () => {
    const engine = await faulty({ kind: "missing_logprobs" });
    expect((await ask(engine)).body.choices[0].logprobs).toBeNull();
    await post(`${engine.url}/test/faults`, { times: 2, fault: { kind: "short_logprobs" } });
    const short = (await ask(engine)).body.choices[0];
    expect(short.logprobs.content).toHaveLength(short.token_ids.length - 1);
    const events = eventsOf((await stream(engine)).text).slice(0, -2);
    expect(events.flatMap((event) => event.choices[0].logprobs?.content ?? [])).toHaveLength(
      short.token_ids.length - 1,
    );
    for (const [as, value] of [
      ["null", null],
      ["string", "NaN"],
      ["floor", -9999],
    ]) {
      await post(`${engine.url}/test/faults`, { fault: { kind: "nan_logprobs", as } });
      const { content } = (await ask(engine)).body.choices[0].logprobs;
      expect(content[0].logprob).toBe(value);
      expect(content[1].logprob).toBeLessThan(0);
    }
    await post(`${engine.url}/test/faults`, { fault: { kind: "nan_logprobs", as: "literal" } });
    const literal = await fetch(`${engine.url}/v1/chat/completions`, {
      method: "POST",
      body: JSON.stringify({ messages: MESSAGES, ...EVIDENCE }),
    });
    expect(await literal.text()).toContain('"logprob":NaN');
  });

  it("missing_ids and missing_prompt_ids", async () => {
    const engine = await faulty({ kind: "missing_ids" });
    expect((await ask(engine)).body).toMatchObject({
      choices: [{ token_ids: null }],
      prompt_token_ids: expect.any(Array),
    });
    await post(`${engine.url}/test/faults`, { times: 2, fault: { kind: "missing_prompt_ids" } });
    expect((await ask(engine)).body).toMatchObject({
      choices: [{ token_ids: expect.any(Array) }],
      prompt_token_ids: null,
    });
    expect((await stream(engine)).text).not.toContain("prompt_token_ids");
  });

  it("wrong_usage", async () => {
    const engine = await faulty({ kind: "wrong_usage", completionTokens: -2 });
    const { body } = await ask(engine);
    expect(body.usage.completion_tokens).toBe(body.choices[0].token_ids.length - 2);
  });

  it("coalesce: several tokens a chunk, none lost", async () => {
    const engine = await faulty({ kind: "coalesce", tokens: 3 });
    const events = eventsOf((await stream(engine)).text).slice(1, -2);
    const whole = (await ask(engine)).body.choices[0];
    expect(events.map((event) => event.choices[0].token_ids?.length)).toContain(3);
    expect(events.flatMap((event) => event.choices[0].token_ids ?? [])).toEqual(whole.token_ids);
    expect(events.flatMap((event) => event.choices[0].logprobs?.content ?? [])).toHaveLength(whole.token_ids.length);
    expect(events.map((event) => event.choices[0].delta.content ?? "").join("")).toBe(whole.message.content);
  });

  it("bad_json and error_event", async () => {
    const engine = await faulty({ kind: "bad_json", afterTokens: 2 }, { times: 2 });
    const broken = (await stream(engine)).text.split("\n\n").filter((event) => event !== "");
    expect(broken.at(-1)).toBe("data: [DONE]");
    expect(() => JSON.parse(broken.at(-2)?.slice(6) ?? "{}")).toThrow(SyntaxError);
    const whole = await fetch(`${engine.url}/v1/chat/completions`, {
      method: "POST",
      body: JSON.stringify({ messages: MESSAGES }),
    });
    expect(whole.status).toBe(200);
    await expect(whole.json()).rejects.toThrow(SyntaxError);
    await post(`${engine.url}/test/faults`, {
      times: 2,
      fault: { kind: "error_event", afterTokens: 2, message: "lost a worker" },
    });
    const events = eventsOf((await stream(engine)).text);
    expect(events.slice(-2)).toEqual([
      { error: { message: "lost a worker", type: "InternalServerError", param: null, code: 500 } },
      "[DONE]",
    ]);
    expect(await ask(engine)).toMatchObject({ status: 500, body: { error: { message: "lost a worker" } } });
  });

  it("no_tokens: an answer that ends before its first token, streamed and not", async () => {
    const engine = await faulty({ kind: "no_tokens", finish: "length" }, { times: 2 });
    const whole = (await ask(engine)).body;
    expect(whole.usage.completion_tokens).toBe(0);
    expect(whole.choices[0]).toMatchObject({ finish_reason: "length", token_ids: [], message: { content: "" } });
    const events = eventsOf((await stream(engine)).text);
    expect(events.at(-2).usage.completion_tokens).toBe(0);
    expect(events.flatMap((event) => event.choices?.[0]?.token_ids ?? [])).toEqual([]);
  });

  it("lost_ids: none behind the first, in streams alone, while usage counts them", async () => {
    const engine = await faulty({ kind: "lost_ids", after: 2 }, { times: 2 });
    const whole = (await ask(engine)).body;
    expect(whole.choices[0].token_ids).toHaveLength(whole.usage.completion_tokens);
    const events = eventsOf((await stream(engine)).text);
    expect(events.at(-2).usage).toEqual(expect.objectContaining({ completion_tokens: whole.usage.completion_tokens }));
    expect(events.flatMap((event) => event.choices?.[0]?.token_ids ?? [])).toHaveLength(2);
    expect(events.flatMap((event) => event.choices?.[0]?.logprobs?.content ?? [])).toHaveLength(2);
  });

  it("lost_chunk: one token's, and with it the usage", async () => {
    const engine = await faulty({ kind: "lost_chunk", token: 1, usage: false });
    const { text } = await stream(engine);
    const whole = (await ask(engine)).body.choices[0];
    const ids = eventsOf(text).flatMap((event) => event.choices?.[0]?.token_ids ?? []);
    expect(ids).toEqual(whole.token_ids.filter((_id: number, index: number) => index !== 1));
    expect(text).not.toContain('"usage"');
  });

  it("hang_before_headers: until released", async () => {
    const engine = await faulty({ kind: "hang_before_headers" });
    let answered = false;
    const pending = ask(engine).then((reply) => {
      answered = true;
      return reply;
    });
    await post(`${engine.url}/test/wait`, { gauge: "hanging", atLeast: 1 });
    expect(answered).toBe(false);
    await post(`${engine.url}/test/release`, {});
    expect((await pending).body.choices[0].finish_reason).toBe("stop");
  });

  it("are checked: one that does not exist is refused with its place", async () => {
    const engine = await start({ policy: script(REPLY) });
    const { status, body } = await post(`${engine.url}/test/faults`, { fault: { kind: "meteor" } });
    expect(status).toBe(400);
    expect(body.error.param).toBe("fault.kind");
  });
});

describe("the weight version", () => {
  it("changes in the middle of an answer, which says so span by span", async () => {
    const engine = await faulty({ kind: "hang_after", tokens: 2 });
    const { body: prompt } = await post(`${engine.url}/tokenize`, { prompt: "go" });
    const pending = post(`${engine.url}/inference/v1/generate`, {
      token_ids: prompt.tokens,
      sampling_params: { max_tokens: 5 },
    });
    await post(`${engine.url}/test/wait`, { gauge: "hanging", atLeast: 1 });
    await post(`${engine.url}/test/weight_version`, { version: "step-2" });
    await post(`${engine.url}/test/release`, {});
    expect((await pending).body.choices[0].weight_versions).toEqual([
      { version: "default", start: 0, end: 2 },
      { version: "step-2", start: 2, end: 5 },
    ]);
    expect((await get(`${engine.url}/weight_info`)).body).toEqual({ weight_version: "step-2" });
    const { body } = await ask(engine);
    expect(body.weight_version).toBe("step-2");
    const events = await streamed(`${engine.url}/v1/chat/completions`, { messages: MESSAGES });
    expect(events.at(-2)).toMatchObject({
      weight_version: "step-2",
      choices: [{ weight_versions: [{ version: "step-2", start: 0 }] }],
    });
  });

  it("is not mentioned by chat replies before one was set", async () => {
    const engine = await start({ policy: script(REPLY) });
    expect((await ask(engine)).body).not.toHaveProperty("weight_version");
  });
});
