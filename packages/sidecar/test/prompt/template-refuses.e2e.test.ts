/** A conversation that the bundle's chat template refuses: the harness gets its dialect's 400 with the template's words, nothing is sampled. */
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { makeBundle } from "@tito/renderer";
import { expect, it } from "vitest";
import { scriptedEngine, startTestSidecar, temporaryDir, turnsOf } from "../harness.js";

const MODEL_DIR = fileURLToPath(new URL("../../../../fixtures/policy", import.meta.url));
const REFUSES = "{%- if messages[-1].content == 'no' -%}{{- raise_exception('Not that word.') -}}{%- endif -%}";

it.each([
  ["chat/completions", { messages: [{ role: "user", content: "no" }] }],
  ["messages", { messages: [{ role: "user", content: "no" }], max_tokens: 9 }],
  ["responses", { input: "no" }],
])("/v1/%s", async (path, body) => {
  const model = join(temporaryDir(), "model");
  cpSync(MODEL_DIR, model, { recursive: true });
  const template = join(model, "chat_template.jinja");
  writeFileSync(template, REFUSES + readFileSync(template, "utf8"));
  const out = join(temporaryDir(), "bundle");
  await makeBundle({ from: model, family: "demo", out, date: "2026-11-30" });
  const engine = await scriptedEngine([{ reply: { content: "fine" } }], { weights: model });
  const started = await startTestSidecar(engine, { renderer: out });
  const { endpoint } = started.sidecar;
  const base = path === "messages" ? `${endpoint.anthropic_base_url}/v1` : endpoint.openai_base_url;
  const reply = await fetch(`${base}/${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${endpoint.api_key}` },
    body: JSON.stringify({ model: "policy", ...body }),
  });
  expect(reply.status).toBe(400);
  expect(((await reply.json()) as Told).error.message).toContain("the chat template refuses: Not that word.");
  expect(turnsOf(await started.sealed())).toEqual([]);
});

interface Told {
  error: { message: string };
}
