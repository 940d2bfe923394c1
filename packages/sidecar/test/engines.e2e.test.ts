import { differencesToEngine } from "@tito/testkit";
import OpenAI from "openai";
import { describe, expect, it } from "vitest";
import { engineSpeaking, type Shape } from "./engine-shapes.js";
import { engineLog, postChat, scriptedEngine, startTestSidecar, turnsOf, user } from "./harness.js";
import { useBundle } from "./renderer-bundle.js";

const bundle = useBundle({ certified: false });
const RULES = [
  { match: { lastContains: "hello" }, reply: { content: "Good day, friend of the house." } },
  { match: { lastContains: "goodbye" }, reply: { content: "Good night." } },
];
const client = (started: { url: string; key: string }) =>
  new OpenAI({ baseURL: started.url, apiKey: started.key, maxRetries: 0 });

const SHAPES: readonly [Shape, Record<string, unknown>][] = [
  ["sglang", { kind: "sglang", version: "0.5.20", model: "policy" }],
  ["fireworks", { kind: "fireworks", version: null, model: "policy" }],
  ["llamacpp", { kind: "llamacpp", version: "b1-abc", model: "policy" }],
];

describe.each(SHAPES)("an engine that speaks as %s", (shape, told) => {
  it.each([false, true])(
    "is found out, and its turns are the engine's own ids and values (stream: %s)",
    async (stream) => {
      const engine = await scriptedEngine(RULES);
      const shaped = await engineSpeaking(shape, engine);
      const started = await startTestSidecar(shaped, { renderer: bundle.dir });
      const openai = client(started);
      const messages: OpenAI.ChatCompletionMessageParam[] = [user("hello")];
      for (const text of ["Good day, friend of the house.", "Good night."]) {
        const body = { model: "policy", messages };
        const reply = stream
          ? await openai.chat.completions.stream(body).finalChatCompletion()
          : await openai.chat.completions.create(body);
        expect(reply.choices[0]).toMatchObject({ finish_reason: "stop", message: { content: text } });
        messages.push(reply.choices[0]!.message, user("goodbye"));
      }
      const log = await started.sealed();
      const turns = turnsOf(log).map(({ record }) => record);
      expect(turns.map(({ decision }) => decision.kind)).toEqual(["new_segment", "append"]);
      for (const turn of turns) {
        expect(turn).toMatchObject({ defects: [], finish_reason: "stop", engine: told });
        expect(turn.stream).toBe(stream ? (shape === "llamacpp" ? "synthetic" : "live") : "none");
        expect(turn.logprob_mode).not.toBe("raw");
        expect(turn.weight_versions.map(({ version }) => version)).toEqual([shape === "sglang" ? "step-7" : "unknown"]);
      }
      // Through a logarithm and back where the shape tells probabilities.
      const differences = differencesToEngine(log, await engineLog(engine));
      expect(differences.filter((one) => shape !== "llamacpp" || !/logprob/i.test(JSON.stringify(one)))).toEqual([]);
    },
  );

  it("ends at the harness's stop string", async () => {
    const shaped = await engineSpeaking(shape, await scriptedEngine(RULES));
    const started = await startTestSidecar(shaped, { renderer: bundle.dir, engine: shape });
    const body = { model: "policy", messages: [user("hello")], stop: [" friend"] };
    expect((await client(started).chat.completions.create(body)).choices[0]!.message.content).toBe("Good day,");
  });
});

describe.each(["sglang", "fireworks"] as const)("an engine that renders and speaks as %s", (shape) => {
  it.each([false, true])("tells ids that the harness does not see (stream: %s)", async (stream) => {
    const engine = await scriptedEngine(RULES);
    const started = await startTestSidecar(await engineSpeaking(shape, engine));
    const response = await postChat(started, { messages: [user("hello")], stream });
    const text = await response.text();
    expect(text).not.toMatch(/sglext|token_ids|meta_info|logprob":-|"choices":\[\]/);
    const bodies = stream
      ? text.split("\n\n").flatMap((event) => (event.startsWith("data: {") ? [event.slice(6)] : []))
      : [text];
    const said = (body: string): string => {
      const { choices } = JSON.parse(body) as { choices: Record<string, { content?: string | null }>[] };
      return choices[0]![stream ? "delta" : "message"]!.content ?? "";
    };
    const content = bodies.map(said).join("");
    expect(content).toBe("Good day, friend of the house.");
    const log = await started.sealed();
    expect(turnsOf(log)[0]!.record).toMatchObject({
      defects: [],
      engine: { kind: shape },
      stream: stream ? "live" : "none",
    });
    expect(differencesToEngine(log, await engineLog(engine))).toEqual([]);
  });
});

describe("llama.cpp", () => {
  it("is refused without a renderer, in words that say what to do", async () => {
    const shaped = await engineSpeaking("llamacpp", await scriptedEngine(RULES));
    await expect(startTestSidecar(shaped, {})).rejects.toMatchObject({
      code: "usage",
      message: expect.stringContaining("llamacpp gives no prompt ids"),
      hint: expect.stringContaining("--renderer"),
    });
  });

  it("is refused where it would not end at an id that ends a turn", async () => {
    const shaped = await engineSpeaking("llamacpp", await scriptedEngine(RULES), [367]);
    await expect(startTestSidecar(shaped, { renderer: bundle.dir })).rejects.toThrow("does not end at id 369");
  });

  it("refuses a call that it can not serve, before a token is spent", async () => {
    const shaped = await engineSpeaking("llamacpp", await scriptedEngine(RULES));
    const started = await startTestSidecar(shaped, { renderer: bundle.dir });
    const asked = shaped.calls.length;
    const body = { model: "policy", messages: [user("hello")], response_format: { type: "json_object" as const } };
    await expect(client(started).chat.completions.create(body)).rejects.toThrow("response_format");
    expect(shaped.calls).toHaveLength(asked);
  });
});

describe("SGLang", () => {
  it("is refused with a limit that needs a count which it is not asked for", async () => {
    const shaped = await engineSpeaking("sglang", await scriptedEngine(RULES));
    await expect(startTestSidecar(shaped, { maxContextTokens: 500 })).rejects.toMatchObject({
      code: "usage",
      message: expect.stringContaining("--max-context-tokens"),
    });
  });

  it("with a filter is recorded as raw: its values are not renormalised over what the filter keeps", async () => {
    const shaped = await engineSpeaking("sglang", await scriptedEngine(RULES));
    const started = await startTestSidecar(shaped, { renderer: bundle.dir });
    await client(started).chat.completions.create({ model: "policy", messages: [user("hello")], top_p: 0.9 });
    expect(turnsOf(await started.sealed())[0]!.record.logprob_mode).toBe("raw");
  });
});

describe("Fireworks", () => {
  it("gets the calls of a trajectory under one session", async () => {
    const shaped = await engineSpeaking("fireworks", await scriptedEngine(RULES));
    const started = await startTestSidecar(shaped, { renderer: bundle.dir });
    await client(started).chat.completions.create({ model: "policy", messages: [user("hello")] });
    expect(shaped.calls.at(-1)!.body).toMatchObject({ context_length_exceeded_behavior: "error", top_k: 0 });
  });
});
