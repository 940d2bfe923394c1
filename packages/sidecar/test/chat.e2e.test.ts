import OpenAI from "openai";
import { describe, expect, it } from "vitest";
import { scriptedEngine, startTestSidecar, turnsOf } from "./harness.js";

const HELLO = [{ match: { lastContains: "hello" }, reply: { content: "Good day." } }];

describe("one chat call", () => {
  it("is answered, recorded and sealed", async () => {
    const engine = await scriptedEngine(HELLO);
    const { url, key, sealed } = await startTestSidecar(engine);
    const openai = new OpenAI({ baseURL: url, apiKey: key });
    const reply = await openai.chat.completions.create({
      model: "policy",
      messages: [{ role: "user", content: "hello" }],
    });
    expect(reply.choices[0]?.message.content).toBe("Good day.");
    const log = await sealed();
    const turns = turnsOf(log);
    expect(turns).toHaveLength(1);
    expect(turns[0]?.record.defects).toEqual([]);
    expect(log.complete).toBe(true);
  });
});
