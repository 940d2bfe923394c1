/** Forced calls and output schemas in every dialect: told to the engine in its words, on record with the turn, and masked by the materializer. */
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { describe, expect, it } from "vitest";
import { scriptedEngine, startTestSidecar, turnsOf } from "../harness.js";
import { useBundle } from "../renderer-bundle.js";

const RULES = [
  { match: { lastContains: "call" }, reply: { tool_calls: [{ name: "look", arguments: '{"at": 1}' }] } },
  { match: { lastContains: "json" }, reply: { content: '{"n": 1}' } },
];
const SCHEMA = { type: "object", properties: { n: { type: "number" } }, required: ["n"] };
const NAMED = { type: "function", function: { name: "look" } };
const bundle = useBundle({ certified: false });

async function start(options = {}) {
  const engine = await scriptedEngine(RULES);
  const started = await startTestSidecar(engine, options);
  const { endpoint } = started.sidecar;
  const openai = new OpenAI({ baseURL: endpoint.openai_base_url, apiKey: endpoint.api_key, maxRetries: 0 });
  const anthropic = new Anthropic({ baseURL: endpoint.anthropic_base_url, apiKey: endpoint.api_key, maxRetries: 0 });
  return { openai, anthropic, ...started };
}

const responses = (input: string) => ({
  model: "policy",
  input,
  tools: [{ type: "function" as const, name: "look", parameters: { type: "object" }, strict: null }],
});
const message = (content: string) => ({
  model: "policy",
  max_tokens: 200,
  messages: [{ role: "user" as const, content }],
  tools: [{ name: "look", input_schema: { type: "object" as const } }],
});

describe("with the engine source", () => {
  it("a forced call reaches the engine, and the turn says that its decoding was constrained", async () => {
    const { openai, anthropic, sealed } = await start();
    await openai.responses.create({ ...responses("call 1"), tool_choice: "required" });
    await openai.responses.create({ ...responses("call 2"), tool_choice: { type: "function", name: "look" } });
    await anthropic.messages.create({ ...message("call 3"), tool_choice: { type: "any" } });
    const last = await anthropic.messages.create({ ...message("call 4"), tool_choice: { type: "tool", name: "look" } });
    expect(last.content).toMatchObject([{ type: "tool_use", name: "look", input: { at: 1 } }]);
    const turns = turnsOf(await sealed());
    expect(turns.map(({ record }) => record.sampling.tool_choice)).toEqual(["required", NAMED, "required", NAMED]);
  });

  it("an output schema reaches the engine as the chat request's own, in the harness's spelling", async () => {
    const { openai, anthropic, sealed } = await start();
    const format = { type: "json_schema" as const, name: "answer", schema: SCHEMA, strict: true };
    const reply = await openai.responses.create({ ...responses("json 1"), text: { format } });
    expect(reply.output_text).toBe('{"n": 1}');
    const body = { ...message("json 2"), output_config: { format: { type: "json_schema" as const, schema: SCHEMA } } };
    await anthropic.messages.create(body);
    await openai.responses.create({ ...responses("json 3"), text: { format: { type: "json_object" } } });
    const turns = turnsOf(await sealed());
    expect(turns.map(({ record }) => record.sampling.response_format)).toEqual([
      { type: "json_schema", json_schema: { name: "answer", schema: SCHEMA, strict: true } },
      { type: "json_schema", json_schema: { name: "output", schema: SCHEMA } },
      { type: "json_object" },
    ]);
  });
});

describe("with a renderer", () => {
  it("a forced call is refused in the dialect's own error: an engine that gets ids can not be made to call", async () => {
    const { openai, anthropic, sealed } = await start({ renderer: bundle.dir });
    await expect(openai.responses.create({ ...responses("call"), tool_choice: "required" })).rejects.toMatchObject({
      status: 400,
      code: "unsupported",
      message: expect.stringContaining("tool_choice"),
    });
    await expect(anthropic.messages.create({ ...message("call"), tool_choice: { type: "any" } })).rejects.toMatchObject(
      { status: 400, error: { error: { type: "invalid_request_error" } } },
    );
    const log = await sealed();
    expect(turnsOf(log)).toEqual([]);
    expect(log.uncaptured.map((one) => one.reason)).toEqual(["refused_unsupported", "refused_unsupported"]);
  });
});
