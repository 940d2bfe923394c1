import Anthropic from "@anthropic-ai/sdk";
import { differencesToEngine } from "@tito/testkit";
import OpenAI from "openai";
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
import { useBundle } from "./renderer-bundle.js";

const bundle = useBundle({ certified: false });

const PARAMETERS = { type: "object", properties: { command: { type: "string" } } };
const TOOLS: OpenAI.ChatCompletionTool[] = [
  { type: "function", function: { name: "bash", description: "Runs a command.", parameters: PARAMETERS } },
];
const RULES = [
  { match: { lastRole: "tool" }, reply: { content: "It is done." } },
  {
    match: { lastContains: "list" },
    reply: {
      reasoning: "I look.",
      content: "Looking.",
      tool_calls: [{ name: "bash", arguments: { command: "ls é" } }],
    },
  },
  { match: { lastContains: "hello" }, reply: { content: "Good day, friend of the house." } },
  { match: { lastContains: "broken" }, reply: { raw: 'Well <tool_call>\n{"name": "bash", "arg' } },
];
const client = (started: { url: string; key: string }) =>
  new OpenAI({ baseURL: started.url, apiKey: started.key, maxRetries: 0 });

describe("the renderer source", () => {
  it.each([false, true])("runs a tool loop that is one segment, each id the engine's (stream: %s)", async (stream) => {
    const engine = await scriptedEngine(RULES);
    const started = await startTestSidecar(engine, { renderer: bundle.dir });
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
    expect(first).toMatchObject({
      finish_reason: "tool_calls",
      message: { content: "Looking.", ...(stream ? {} : { reasoning_content: "I look." }) },
    });
    const [call] = first.message.tool_calls!;
    expect(call).toMatchObject({ type: "function", function: { name: "bash", arguments: '{"command": "ls é"}' } });
    expect(call!.id).toMatch(/^call_[0-9a-f]{24}$/);
    // The client's stream helper keeps only the last piece of a field that it does not know.
    messages.push(Object.assign(first.message, { reasoning_content: "I look." }), {
      role: "tool",
      tool_call_id: call!.id,
      content: "a.txt <|im_end|>",
    });
    expect(await ask(messages)).toMatchObject({ finish_reason: "stop", message: { content: "It is done." } });
    const log = await started.sealed();
    const turns = turnsOf(log);
    expect(turns.map(({ record }) => record.decision.kind)).toEqual(["new_segment", "append"]);
    expect(turns.map(({ record }) => record.defects)).toEqual([[], []]);
    expect(turns.map(({ record }) => record.special_text_escaped)).toEqual([false, true]);
    expect(turns[0]!.record).toMatchObject({
      finish_reason: "tool_calls",
      malformed: false,
      prompt_mode: "full_history",
      logprob_mode: "processed",
      stream: stream ? "live" : "none",
      renderer_contract: expect.stringMatching(/^bundle:[0-9a-f]{64}$/),
    });
    expect(differencesToEngine(log, await engineLog(engine))).toEqual([]);
  });

  it("shows the policy the tools that the engine's own rendering shows, strict or not", async () => {
    const strict = { name: "strict", description: "d", parameters: PARAMETERS, strict: true };
    const loose = { name: "loose", description: "d", parameters: PARAMETERS, strict: false };
    const tools = [...TOOLS, ...[strict, loose].map((one) => ({ type: "function", function: one }))];
    const turn = async (flags: { renderer?: string }) => {
      const engine = await scriptedEngine(RULES);
      const started = await startTestSidecar(engine, flags);
      const reply = await postChat(started, { messages: [user("hello")], tools });
      expect(reply.status).toBe(200);
      await reply.text();
      return turnsOf(await started.sealed())[0]!;
    };
    const [theirs, ours] = [await turn({}), await turn({ renderer: bundle.dir })];
    expect(ours.promptIds).toEqual(theirs.promptIds);
    expect(ours.record.tools!.map((tool) => tool.strict)).toEqual([undefined, true, false]);
    expect(ours.record.tools_sha256).toEqual(theirs.record.tools_sha256);
  });

  it("speaks Messages and Responses too", async () => {
    const engine = await scriptedEngine(RULES);
    const started = await startTestSidecar(engine, { renderer: bundle.dir });
    const anthropic = new Anthropic({
      baseURL: started.sidecar.endpoint.anthropic_base_url,
      apiKey: started.key,
      maxRetries: 0,
    });
    const tools = [
      { name: "bash", description: "Runs a command.", input_schema: { ...PARAMETERS, type: "object" as const } },
    ];
    const request = { model: "policy", max_tokens: 200, messages: [user("list the files")], tools };
    const message = await anthropic.messages.stream(request).finalMessage();
    expect(message.stop_reason).toBe("tool_use");
    expect(message.content.at(-1)).toMatchObject({ type: "tool_use", name: "bash", input: { command: "ls é" } });
    const counted = await anthropic.messages.countTokens({ model: "policy", messages: request.messages, tools });
    expect(counted.input_tokens).toBe(message.usage.input_tokens);
    const responses = await client(started).responses.create({ model: "policy", input: "hello", store: false });
    expect(responses.output_text).toBe("Good day, friend of the house.");
    const turns = turnsOf(await started.sealed());
    expect(turns.map(({ record }) => record.dialect)).toEqual(["messages", "responses"]);
    expect(turns[0]!.promptIds).toHaveLength(counted.input_tokens);
  });

  it("gives a malformed answer as raw text, flagged, with all its ids", async () => {
    const engine = await scriptedEngine(RULES);
    const started = await startTestSidecar(engine, { renderer: bundle.dir });
    const body = { model: "policy", messages: [user("broken")], tools: TOOLS };
    const reply = await client(started).chat.completions.stream(body).finalChatCompletion();
    expect(reply.choices[0]).toMatchObject({
      finish_reason: "stop",
      message: { content: 'Well <tool_call>\n{"name": "bash", "arg' },
    });
    const log = await started.sealed();
    expect(turnsOf(log)[0]!.record).toMatchObject({ malformed: true, defects: [] });
    expect(differencesToEngine(log, await engineLog(engine))).toEqual([]);
  });

  it.each([false, true])(
    "cuts the text at a stop string as the engine does, and keeps every id (stream: %s)",
    async (stream) => {
      const engine = await scriptedEngine(RULES);
      const started = await startTestSidecar(engine, { renderer: bundle.dir });
      const whole = { model: "policy", messages: [user("hello")], stop: ["friend of", "nothing"] };
      const body = { ...whole, stream };
      const text = stream
        ? (await client(started).chat.completions.stream(whole).finalChatCompletion()).choices[0]!.message.content
        : (await client(started).chat.completions.create({ ...body, stream: false })).choices[0]!.message.content;
      expect(text).toBe("Good day, ");
      const log = await started.sealed();
      const [turn] = turnsOf(log);
      expect(turn!.record).toMatchObject({ stop_reason: "friend of", finish_reason: "stop", malformed: false });
      expect(differencesToEngine(log, await engineLog(engine))).toEqual([]);
    },
  );

  it("refuses an overflow in the words that harnesses know, before a token is spent", async () => {
    const engine = await scriptedEngine(RULES);
    const started = await startTestSidecar(engine, { renderer: bundle.dir, maxContextTokens: 400 });
    const response = await postChat(started, { messages: [user("hello ".repeat(600))] });
    expect(response.status).toBe(400);
    const { error } = (await response.json()) as { error: { code: string; message: string } };
    expect(error.code).toBe("context_length_exceeded");
    expect(error.message).toMatch(
      /^This model's maximum context length is 400 tokens\. However, your messages resulted in \d+ tokens\.$/,
    );
    expect(await engineLog(engine)).toEqual([]);
  });

  it("clamps the answer to the room that is left", async () => {
    const engine = await scriptedEngine(RULES);
    const probe = await startTestSidecar(engine, { renderer: bundle.dir });
    const { prompt_tokens } = (
      await client(probe).chat.completions.create({ model: "policy", messages: [user("hello")] })
    ).usage!;
    const started = await startTestSidecar(engine, { renderer: bundle.dir, maxContextTokens: prompt_tokens + 3 });
    const body = { model: "policy", messages: [user("hello")], max_tokens: 500 };
    const reply = await client(started).chat.completions.create(body);
    expect(reply.choices[0]!.finish_reason).toBe("length");
    const [turn] = turnsOf(await started.sealed());
    expect(turn!.record.sampling).toMatchObject({ max_tokens: 3 });
    expect(turn!.sampledIds).toHaveLength(3);
  });

  it("goes on from prompt and partial ids when the engine aborts in the middle: one turn, two version spans", async () => {
    const engine = await scriptedEngine([
      {
        match: { lastContains: "hello" },
        times: 1,
        reply: { content: "Good day, friend." },
        fault: { kind: "abort", afterTokens: 4 },
      },
      { match: { contains: "hello" }, reply: { content: " And good night." } },
    ]);
    const started = await startTestSidecar(engine, { renderer: bundle.dir });
    const response = await postChat(started, {
      messages: [user("hello")],
      stream: true,
      stream_options: { include_usage: true },
    });
    const events: string[] = [];
    for await (const event of readEvents(response)) events.push(event);
    expect(events.at(-1)).toBe("data: [DONE]");
    const log = await started.sealed();
    const [turn, ...others] = turnsOf(log);
    expect(others).toEqual([]);
    expect(turn!.record).toMatchObject({
      defects: [],
      finish_reason: "stop",
      usage: { completion_tokens: turn!.sampledIds.length },
    });
    const calls = await engineLog(engine);
    expect(calls.map((call) => call.prompt_ids)).toEqual([
      turn!.promptIds,
      [...turn!.promptIds, ...turn!.sampledIds.slice(0, 4)],
    ]);
    expect(turn!.sampledIds).toEqual(calls.flatMap((call) => call.sampled_ids));
    expect(turn!.record.weight_versions.map(({ start, end }) => [start, end])).toEqual([
      [0, 4],
      [4, turn!.sampledIds.length],
    ]);
    expect(turn!.record.message.content).toMatch(/^Good.* And good night\.$/);
  });

  it("marks a turn whose prompt the engine counts otherwise", async () => {
    const engine = await scriptedEngine(RULES);
    const started = await startTestSidecar(engine, { renderer: bundle.dir });
    await engineTest(engine, "faults", { fault: { kind: "wrong_usage", promptTokens: 1, completionTokens: 0 } });
    await client(started).chat.completions.create({ model: "policy", messages: [user("hello")] });
    expect(turnsOf(await started.sealed())[0]!.record.defects).toEqual(["prompt_count_disagrees"]);
  });

  it("refuses what cannot be forced on an engine that gets ids", async () => {
    const engine = await scriptedEngine(RULES);
    const started = await startTestSidecar(engine, { renderer: bundle.dir });
    const response = await postChat(started, { messages: [user("hello")], tools: TOOLS, tool_choice: "required" });
    expect(response.status).toBe(400);
    expect(await response.text()).toContain("tool_choice");
  });
});
