import Anthropic from "@anthropic-ai/sdk";
import { differencesToEngine } from "@tito/testkit";
import OpenAI from "openai";
import { describe, expect, it } from "vitest";
import { engineLog, postChat, scriptedEngine, serverBefore, startTestSidecar, turnsOf, user } from "./harness.js";

const RULES = [
  { match: { lastRole: "tool" }, reply: { content: "It is done." } },
  {
    match: { contains: "list" },
    reply: { content: "Looking.", tool_calls: [{ name: "bash", arguments: { command: "ls" } }] },
  },
];
const PARAMETERS = { type: "object" as const, properties: { command: { type: "string" } } };

describe("OpenAI Responses through the sidecar", () => {
  it.each([false, true])("runs a tool loop in one segment (stream: %s)", async (stream) => {
    const engine = await scriptedEngine(RULES);
    const started = await startTestSidecar(engine);
    const openai = new OpenAI({ baseURL: started.url, apiKey: started.key, maxRetries: 0 });
    const tools: OpenAI.Responses.Tool[] = [{ type: "function", name: "bash", parameters: PARAMETERS, strict: false }];
    const ask = (input: OpenAI.Responses.ResponseInput) => {
      const body = { model: "policy", input, tools };
      return stream ? openai.responses.stream(body).finalResponse() : openai.responses.create(body);
    };
    const input: OpenAI.Responses.ResponseInput = [user("list the files")];
    const first = await ask(input);
    const items: readonly { type: string }[] = first.output;
    const call = items.find((item) => item.type === "function_call") as OpenAI.Responses.ResponseFunctionToolCall;
    expect(call.name).toBe("bash");
    input.push(...(first.output as OpenAI.Responses.ResponseInput), {
      type: "function_call_output",
      call_id: call.call_id,
      output: "a.txt",
    });
    expect((await ask(input)).output_text).toBe("It is done.");
    const log = await started.sealed();
    const turns = turnsOf(log);
    expect(turns.map((turn) => [turn.record.dialect, turn.record.decision.kind, turn.record.finish_reason])).toEqual([
      ["responses", "new_segment", "tool_calls"],
      ["responses", "append", "stop"],
    ]);
    expect(differencesToEngine(log, await engineLog(engine))).toEqual([]);
  });
});

describe("Anthropic Messages through the sidecar", () => {
  it.each([false, true])("runs a tool loop in one segment (stream: %s)", async (stream) => {
    const engine = await scriptedEngine(RULES);
    const started = await startTestSidecar(engine);
    const anthropic = new Anthropic({ baseURL: started.url.replace(/\/v1$/, ""), apiKey: started.key, maxRetries: 0 });
    const tools: Anthropic.Tool[] = [{ name: "bash", input_schema: PARAMETERS }];
    const ask = (messages: Anthropic.MessageParam[]) => {
      const body = { model: "policy", max_tokens: 100, messages, tools };
      return stream ? anthropic.messages.stream(body).finalMessage() : anthropic.messages.create(body);
    };
    const messages: Anthropic.MessageParam[] = [user("list the files")];
    const first = await ask(messages);
    expect(first.stop_reason).toBe("tool_use");
    const use = first.content.find((block) => block.type === "tool_use")!;
    messages.push(
      { role: "assistant", content: first.content },
      { role: "user", content: [{ type: "tool_result", tool_use_id: use.id, content: "a.txt" }] },
    );
    const second = await ask(messages);
    expect(second.content).toMatchObject([{ type: "text", text: "It is done." }]);
    const log = await started.sealed();
    const turns = turnsOf(log);
    expect(turns.map((turn) => [turn.record.dialect, turn.record.decision.kind])).toEqual([
      ["messages", "new_segment"],
      ["messages", "append"],
    ]);
    expect(second.usage.output_tokens).toBe(turns[1]!.sampledIds.length);
    expect(differencesToEngine(log, await engineLog(engine))).toEqual([]);
  });

  it("counts tokens exactly as the engine renders them", async () => {
    const engine = await scriptedEngine(RULES);
    const started = await startTestSidecar(engine);
    const anthropic = new Anthropic({ baseURL: started.url.replace(/\/v1$/, ""), apiKey: started.key, maxRetries: 0 });
    const messages: Anthropic.MessageParam[] = [user("list the files")];
    const { input_tokens } = await anthropic.messages.countTokens({ model: "policy", messages });
    await anthropic.messages.create({ model: "policy", max_tokens: 100, messages });
    expect(turnsOf(await started.sealed())[0]!.promptIds).toHaveLength(input_tokens);
  });
});

describe("an engine whose streams lose ids", () => {
  it("is called unstreamed, and the harness gets a stream all the same", async () => {
    const engine = await scriptedEngine(RULES);
    const front = await serverBefore(engine, (request, response) => {
      if (request.url !== "/v1/chat/completions") return false;
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => void pass(engine.url, Buffer.concat(chunks).toString(), response));
      return true;
    });
    const started = await startTestSidecar(front);
    const text = await (
      await postChat(started, {
        messages: [user("list it")],
        stream: true,
        tools: [{ type: "function", function: { name: "bash", parameters: PARAMETERS } }],
      })
    ).text();
    expect(text).toContain('"finish_reason":"tool_calls"');
    expect(text.trimEnd().endsWith("data: [DONE]")).toBe(true);
    const [turn] = turnsOf(await started.sealed());
    expect(turn!.record).toMatchObject({ stream: "synthetic", defects: [] });
  });
});

/** Passes a call on, and takes the ids out of streams as some versions of vLLM did with tools. */
async function pass(engineUrl: string, body: string, response: import("node:http").ServerResponse): Promise<void> {
  const answer = await fetch(`${engineUrl}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body,
  });
  const text = await answer.text();
  const isStream = answer.headers.get("content-type")?.includes("event-stream") === true;
  response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "" });
  response.end(isStream ? text.replace(/"token_ids":\[[^\]]*\]/g, '"token_ids":null') : text);
}
