import { rebuildBodyFrom } from "@tito/format";
import { differencesToEngine } from "@tito/testkit";
import OpenAI from "openai";
import { describe, expect, it } from "vitest";
import { engineLog, postChat, readEvents, scriptedEngine, startTestSidecar, turnsOf, user } from "./harness.js";

const TOOLS: OpenAI.ChatCompletionTool[] = [
  {
    type: "function",
    function: {
      name: "bash",
      description: "Runs a command.",
      parameters: { type: "object", properties: { command: { type: "string" } } },
    },
  },
];
const RULES = [
  { match: { lastRole: "tool" }, reply: { content: "It is done." } },
  {
    match: { lastContains: "list" },
    reply: { content: "Looking.", tool_calls: [{ name: "bash", arguments: { command: "ls" } }] },
  },
  { match: { lastContains: "hello" }, reply: { content: "Good day, friend." } },
];

const client = (started: { url: string; key: string }) =>
  new OpenAI({ baseURL: started.url, apiKey: started.key, maxRetries: 0 });

/** What differs from call to call by nature. */
const anonymous = (json: string): unknown => {
  const value = JSON.parse(
    json.replace(/"id":"[^"]*"/g, '"id":"x"').replace(/"created":\d+/g, '"created":0'),
  ) as Record<string, unknown>;
  return value;
};

describe("the official OpenAI client", () => {
  it.each([false, true])(
    "runs a tool loop that is one segment, token by token what the engine saw (stream: %s)",
    async (stream) => {
      const engine = await scriptedEngine(RULES);
      const started = await startTestSidecar(engine);
      const openai = client(started);
      const ask = async (messages: OpenAI.ChatCompletionMessageParam[]): Promise<OpenAI.ChatCompletion.Choice> => {
        const body = { model: "policy", messages, tools: TOOLS };
        const reply = stream
          ? await openai.chat.completions.stream(body).finalChatCompletion()
          : await openai.chat.completions.create(body);
        return reply.choices[0]!;
      };
      const messages: OpenAI.ChatCompletionMessageParam[] = [user("list the files")];
      const first = await ask(messages);
      expect(first.finish_reason).toBe("tool_calls");
      const [call] = first.message.tool_calls!;
      expect(call).toMatchObject({ type: "function", function: { name: "bash" } });
      messages.push(first.message, { role: "tool", tool_call_id: call!.id, content: "a.txt" });
      const second = await ask(messages);
      expect(second).toMatchObject({ finish_reason: "stop", message: { content: "It is done." } });
      const log = await started.sealed();
      const turns = turnsOf(log);
      expect(turns.map((turn) => turn.record.decision.kind)).toEqual(["new_segment", "append"]);
      expect(turns[1]!.promptIds.slice(0, turns[0]!.promptIds.length + turns[0]!.sampledIds.length)).toEqual([
        ...turns[0]!.promptIds,
        ...turns[0]!.sampledIds,
      ]);
      expect(turns[1]!.record.tools).toBeNull();
      expect(turns[0]!.record).toMatchObject({
        finish_reason: "tool_calls",
        stream: stream ? "live" : "none",
        defects: [],
        logprob_mode: "processed",
        lane: "main",
      });
      expect(turns[0]!.record.message).toMatchObject({
        content: "Looking.",
        tool_calls: [{ id: call!.id, name: "bash" }],
      });
      expect(differencesToEngine(log, await engineLog(engine))).toEqual([]);
      expect(log.deliveries.get(turns[0]!.record.call_id)).toMatchObject([{ outcome: "delivered", status: 200 }]);
      expect(log.manifest?.status).toBe("complete");
    },
  );

  it("lists the model as the engine does", async () => {
    const engine = await scriptedEngine(RULES);
    const started = await startTestSidecar(engine);
    const models = await client(started).models.list();
    expect(models.data.map((model) => model.id)).toEqual(["policy"]);
  });

  it("O.84: gets a context overflow under the code that makes agents compact, and the journal says what it was", async () => {
    const engine = await scriptedEngine(RULES, { maxModelLen: 256 });
    const started = await startTestSidecar(engine);
    const error = await client(started)
      .chat.completions.create({ model: "policy", messages: [user("hello ".repeat(300))] })
      .catch((caught: unknown) => caught);
    expect(error).toMatchObject({ status: 400, code: "context_length_exceeded", param: "messages" });
    expect((error as InstanceType<typeof OpenAI.APIError>).headers?.get("x-should-retry")).toBe("false");
    const { uncaptured } = await started.sealed();
    expect(uncaptured.map((record) => record.reason)).toEqual(["refused_context_overflow"]);
  });
});

describe("what the harness gets", () => {
  it("is the engine's own stream, minus what only the sidecar asked for", async () => {
    const engine = await scriptedEngine(RULES);
    const started = await startTestSidecar(engine);
    const body = { messages: [user("list, please")], tools: TOOLS, stream: true, seed: 7 };
    const [proxied, direct] = await Promise.all(
      [started, { url: `${engine.url}/v1`, key: "none" }].map(async (target) => {
        const response = await postChat(target, body);
        expect(response.headers.get("content-type")).toContain("text/event-stream");
        const events: string[] = [];
        for await (const event of readEvents(response)) events.push(event.slice("data: ".length));
        return events;
      }),
    );
    expect(proxied!.at(-1)).toBe("[DONE]");
    // An engine that is not asked for ids sends no chunks that would carry nothing else.
    const isEmpty = (event: string) =>
      /"delta":\{(?:"content":"")?\}/.test(event) && event.includes('"finish_reason":null');
    const shown = (events: string[]) =>
      events
        .slice(0, -1)
        .filter((event) => !isEmpty(event))
        .map(anonymous)
        .map(withoutCallIds);
    expect(shown(proxied!)).toEqual(shown(direct!));
  });

  it("is a body with all that the engine's own body says, minus what only the sidecar asked for", async () => {
    const engine = await scriptedEngine(RULES);
    const started = await startTestSidecar(engine);
    const body = { messages: [user("hello")], seed: 7 };
    const proxied = anonymous(await (await postChat(started, body)).text()) as Record<string, unknown>;
    const direct = anonymous(await (await postChat({ url: `${engine.url}/v1`, key: "none" }, body)).text()) as Record<
      string,
      unknown
    >;
    expect(withoutEmpty(proxied)).toEqual(withoutEmpty(direct));
    expect(JSON.stringify(proxied)).not.toMatch(/token_ids|logprob":-/);
  });

  it("keeps log probabilities and token ids that it asked for itself", async () => {
    const engine = await scriptedEngine(RULES);
    const started = await startTestSidecar(engine);
    const response = await postChat(started, {
      messages: [user("hello")],
      logprobs: true,
      top_logprobs: 2,
      return_token_ids: true,
    });
    const reply = (await response.json()) as {
      prompt_token_ids: number[];
      choices: { token_ids: number[]; logprobs: { content: { top_logprobs: unknown[] }[] } }[];
    };
    expect(reply.prompt_token_ids.length).toBeGreaterThan(0);
    expect(reply.choices[0]!.logprobs.content).toHaveLength(reply.choices[0]!.token_ids.length);
    expect(reply.choices[0]!.logprobs.content[0]!.top_logprobs).toHaveLength(2);
  });

  it.each([true, false])("has usage in the stream only when asked for (%s)", async (asked) => {
    const engine = await scriptedEngine(RULES);
    const started = await startTestSidecar(engine);
    const response = await postChat(started, {
      messages: [user("hello")],
      stream: true,
      ...(asked ? { stream_options: { include_usage: true } } : {}),
    });
    const text = await response.text();
    expect(text.includes('"usage"')).toBe(asked);
    expect(text.includes('"choices":[]')).toBe(asked);
    const log = await started.sealed();
    expect(turnsOf(log)[0]!.record.usage.completion_tokens).toBe(turnsOf(log)[0]!.sampledIds.length);
  });

  it("ends after the record is on disk: everything before the finish comes live, the rest with it", async () => {
    const engine = await scriptedEngine(RULES);
    const started = await startTestSidecar(engine);
    const response = await postChat(started, { messages: [user("hello")], stream: true });
    const finishes: number[] = [];
    let index = 0;
    for await (const event of readEvents(response)) {
      if (/"finish_reason":"/.test(event) || event === "data: [DONE]") finishes.push(index);
      index += 1;
    }
    expect(finishes).toEqual([index - 2, index - 1]);
  });
});

describe("the request that the engine gets", () => {
  it("says every sampling field that the harness left out, and keeps those it set", async () => {
    const engine = await scriptedEngine(RULES);
    const started = await startTestSidecar(engine);
    await (
      await postChat(started, {
        messages: [user("hello")],
        temperature: 0.5,
        top_p: null,
        max_tokens: 9,
        stop: "never said",
      })
    ).text();
    const [turn] = turnsOf(await started.sealed());
    expect(turn!.record.sampling).toEqual({
      temperature: 0.5,
      top_p: 1,
      top_k: -1,
      min_p: 0,
      repetition_penalty: 1,
      presence_penalty: 0,
      frequency_penalty: 0,
      max_tokens: 9,
      stop: ["never said"],
    });
    const [entry] = await engineLog(engine);
    expect(entry!.sampling).toMatchObject({ temperature: 0.5 });
  });

  it("can be rebuilt from the journal as the harness sent it, byte by byte", async () => {
    const engine = await scriptedEngine(RULES);
    const started = await startTestSidecar(engine);
    const odd =
      '{ "messages":[{"role":"user","content":"hello \\u00e9"}] ,"model":"policy", "user":"me", "metadata":{"n":10000000000000001}}';
    const response = await fetch(`${started.url}/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${started.key}` },
      body: odd,
    });
    expect(response.status).toBe(200);
    await response.text();
    const log = await started.sealed();
    expect(Buffer.from(rebuildBodyFrom((id) => log.intents.get(id)?.body, [...log.intents.keys()][0]!))).toEqual(
      Buffer.from(odd),
    );
  });
});

function withoutCallIds(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value).replace(/"id":"(?:call_|chatcmpl-tool-)[^"]*"/g, '"id":"call"'));
}

/** A stream does not send the members of a body that say nothing. */
function withoutEmpty(value: Record<string, unknown>): unknown {
  return JSON.parse(JSON.stringify(value), (_key: string, member: unknown) =>
    member === null || (Array.isArray(member) && member.length === 0) ? undefined : member,
  );
}
