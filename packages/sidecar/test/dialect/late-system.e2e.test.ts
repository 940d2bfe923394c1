/** Claude Code's system message behind the first user message, on a template that takes it and on one that refuses it. */
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import Anthropic from "@anthropic-ai/sdk";
import { makeBundle } from "@tito/renderer";
import { describe, expect, it } from "vitest";
import { scriptedEngine, startTestSidecar, temporaryDir, turnsOf } from "../harness.js";

const MODEL_DIR = fileURLToPath(new URL("../../../../fixtures/policy", import.meta.url));
const REFUSES =
  "{%- for message in messages -%}{%- if not loop.first and message.role == 'system' -%}" +
  "{{- raise_exception('System message must be at the beginning.') -}}{%- endif -%}{%- endfor -%}";
const RULES = [{ reply: { content: "fine" } }];
const REMINDER = { role: "user", content: "<system-reminder>\nUse the tools.\n</system-reminder>" };

/** The embedded engine's model with a template that takes one system message, first, as Qwen3.5's does. */
function strictModel(): string {
  const dir = join(temporaryDir(), "model");
  cpSync(MODEL_DIR, dir, { recursive: true });
  const template = join(dir, "chat_template.jinja");
  writeFileSync(template, REFUSES + readFileSync(template, "utf8"));
  return dir;
}

async function ask(engineOptions: object, options: object = {}) {
  const started = await startTestSidecar(await scriptedEngine(RULES, engineOptions), options);
  const { endpoint } = started.sidecar;
  const anthropic = new Anthropic({ baseURL: endpoint.anthropic_base_url, apiKey: endpoint.api_key, maxRetries: 0 });
  const body = {
    model: "policy",
    system: "You are an agent.",
    messages: [
      { role: "user", content: "hello" },
      { role: "system", content: [{ type: "text", text: "Use the tools." }] },
    ] as unknown as Anthropic.MessageParam[],
  };
  const counted = await anthropic.messages.countTokens(body);
  const reply = await anthropic.messages.create({ ...body, max_tokens: 50 });
  expect(reply.content).toMatchObject([{ type: "text", text: "fine" }]);
  const [turn] = turnsOf(await started.sealed());
  expect(counted.input_tokens).toBe(turn!.promptIds.length);
  return turn!.record.messages_new.map(({ role, content }) => ({ role, content }));
}

describe("a system message behind the first user message", () => {
  it("stays one where the template takes it", async () => {
    expect((await ask({}))[2]).toEqual({ role: "system", content: "Use the tools." });
  });

  it("is a reminder of the user's where the engine's template refuses it", async () => {
    expect((await ask({ weights: strictModel() }))[2]).toEqual(REMINDER);
  });

  it("is a reminder of the user's where a bundle's template refuses it", async () => {
    const model = strictModel();
    const out = join(temporaryDir(), "bundle");
    await makeBundle({ from: model, family: "demo", out, date: "2026-11-30" });
    expect((await ask({ weights: model }, { renderer: out }))[2]).toEqual(REMINDER);
  });
});
