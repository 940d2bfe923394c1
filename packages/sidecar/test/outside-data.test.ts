/** Every value that is read from outside, replaced by each strange one: what reads it answers, or refuses with an error of ours (O.114). */
import { TitoError } from "@tito/format";
import { describe, expect, it } from "vitest";
import { codecOf } from "../src/dialect/dialects.js";
import { modelReply, modelsReply } from "../src/dialect/models.js";
import { parseEngineJson } from "../src/json/slices.js";
import { chatReader } from "../src/prompt/engine-source.js";
import { passthroughWriter } from "../src/record/relay.js";
import { readEngineChunk } from "../src/sample/engine-chunk.js";
import { readFailure } from "../src/sample/engine-failure.js";
import type { UpstreamResponse } from "../src/sample/upstream.js";
import { BODIES, everyChange, REPLIES } from "./outside-data.js";

/** Throws what is neither an answer nor a refusal. */
async function readOrRefuse(what: string, read: () => unknown): Promise<void> {
  try {
    await read();
  } catch (error) {
    if (!TitoError.is(error)) throw new Error(`${what}: ${String(error)}`, { cause: error });
  }
}

/** Only a chat's own chunks and bodies are passed on. */
const CHAT_REPLIES = REPLIES.slice(0, 2);

const DIALECTS = { "/v1/chat/completions": "chat", "/v1/responses": "responses", "/v1/messages": "messages" } as const;

describe("every value from outside (O.114)", () => {
  it.each(Object.keys(DIALECTS) as (keyof typeof DIALECTS)[])("of a request to %s", async (route) => {
    const codec = codecOf(DIALECTS[route]);
    let read = 0;
    for (const { what, bytes } of everyChange(BODIES[route]))
      await readOrRefuse(what, () => {
        const request = codec.parse(bytes);
        codec.stream(request);
        read += 1;
      });
    expect(read).toBeGreaterThan(50);
  });

  it("of an engine's refusal", async () => {
    for (const template of REPLIES)
      for (const { what, bytes } of everyChange(template)) {
        const response: UpstreamResponse = {
          status: 400,
          header: (name) => (name === "retry-after" ? bytes.toString("utf8").slice(0, 50) : null),
          read: () => Promise.resolve(),
          text: () => Promise.resolve(bytes.toString("utf8")),
        };
        const { error } = await readFailure(response).catch((cause: unknown) => {
          throw new Error(what, { cause });
        });
        expect(typeof error.message).toBe("string");
      }
  });

  it("of an engine's reply that is passed on", async () => {
    const wishes = { logprobs: false, tokenIds: false, usage: true };
    const all = { logprobs: true, tokenIds: true, usage: true };
    let passed = 0;
    for (const template of CHAT_REPLIES)
      for (const { what, bytes } of everyChange(template)) {
        // The longest once, where its items are.
        if (bytes.length > 300_000 && !what.startsWith("choices.0.logprobs.content =")) continue;
        const raw = bytes.toString("utf8");
        let chunk: ReturnType<typeof readEngineChunk>;
        try {
          chunk = readEngineChunk(parseEngineJson(raw));
        } catch {
          // What can not be read as a reply is none, and ends the call.
          continue;
        }
        await readOrRefuse(what, () => {
          const events = chatReader({ stop: [] }, "a-1").read(chunk);
          for (const each of raw.length > 5000 ? [all] : [wishes, all]) {
            passthroughWriter(each, "a-1").chunk(raw, chunk, events);
            const collecting = passthroughWriter(each, "a-1");
            collecting.collect(raw, chunk);
            collecting.body(null, events);
            passthroughWriter(each, "a-1").body(raw, events);
          }
          passed += 1;
        });
      }
    expect(passed).toBeGreaterThan(200);
  }, 180_000);

  it("of an engine's list of models", async () => {
    const entry = {
      id: "policy",
      object: "model",
      created: 1_790_000_000,
      owned_by: "vllm",
      display_name: "P",
      root: {},
    };
    for (const { what, bytes } of everyChange(entry))
      await readOrRefuse(what, () => {
        const model = { id: "policy", entry: bytes.toString("utf8") };
        for (const anthropic of [true, false]) {
          JSON.parse(modelsReply(model, anthropic));
          JSON.parse(modelReply(model, "policy", anthropic)!);
        }
      });
  });
});
