/** Every refusal on the wire, in every dialect: the same status and code wherever the dialect has codes. And the list of models, which has no dialect in its path. */
import { request } from "node:http";
import { text } from "node:stream/consumers";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { describe, expect, it } from "vitest";
import { type Started, scriptedEngine, startTestSidecar } from "./harness.js";

const RULES = [{ match: { lastContains: "hello" }, reply: { content: "one two" } }];
const HELLO = [{ role: "user", content: "hello" }];
const IMAGE = [{ role: "user", content: [{ type: "image", source: {}, image_url: {} }] }];
const LONG = [{ role: "user", content: "word ".repeat(3000) }];

interface Dialect {
  path: string;
  body(messages: unknown): object;
}
const chat = { path: "/v1/chat/completions", body: (messages: unknown) => ({ messages }) };
const DIALECTS: Record<string, Dialect> = {
  chat,
  completions: { path: "/v1/completions", body: () => ({ prompt: "hello" }) },
  responses: { path: "/v1/responses", body: (input) => ({ input }) },
  messages: { path: "/v1/messages", body: (messages) => ({ messages, max_tokens: 9 }) },
  count_tokens: { path: "/v1/messages/count_tokens", body: (messages) => ({ messages }) },
};

interface Asked {
  method?: string;
  headers?: Record<string, string | string[]>;
  body?: string | Buffer;
  messages?: unknown;
}

/** A refusal: how it is asked for, and its status, type and code; `messages` is the type in the Messages API. */
interface Refusal extends Asked {
  words: string;
  status: number;
  type: string;
  code: string;
  messagesType: string;
  /** Dialects in which it can not be: completions are refused before their bodies are read. */
  not?: string[];
}
const INVALID = { type: "invalid_request_error", messagesType: "invalid_request_error" };
const FORBIDDEN = { status: 403, type: "permission_error", code: "forbidden_host", messagesType: "permission_error" };
const KEY = {
  status: 401,
  type: "authentication_error",
  code: "invalid_api_key",
  messagesType: "authentication_error",
};
const REFUSALS: Refusal[] = [
  { words: "another Host", headers: { host: "evil.example" }, ...FORBIDDEN },
  { words: "two Hosts", headers: { host: ["127.0.0.1", "evil.example"] }, ...FORBIDDEN },
  { words: "an Origin", headers: { origin: "http://evil.example" }, ...FORBIDDEN },
  { words: "no key", headers: { authorization: "" }, ...KEY },
  { words: "another key", headers: { authorization: "Bearer no" }, ...KEY },
  { words: "another method", method: "PUT", status: 405, code: "method_not_allowed", ...INVALID },
  {
    words: "a form",
    headers: { "content-type": "text/plain" },
    status: 415,
    code: "unsupported_media_type",
    ...INVALID,
  },
  { words: "rot13", headers: { "content-encoding": "rot13" }, status: 415, code: "unsupported_media_type", ...INVALID },
  {
    words: "a body without end",
    headers: { "content-length": "100000000" },
    status: 413,
    code: "body_too_large",
    type: INVALID.type,
    messagesType: "request_too_large",
  },
  { words: "no JSON", body: "{", status: 400, code: "bad_request", ...INVALID, not: ["completions"] },
  {
    words: "no UTF-8",
    body: Buffer.from([0x22, 0xff, 0x22]),
    status: 400,
    code: "bad_request",
    ...INVALID,
    not: ["completions"],
  },
  { words: "no messages", messages: 7, status: 400, code: "bad_request", ...INVALID, not: ["completions"] },
  { words: "an image", messages: IMAGE, status: 400, code: "unsupported", ...INVALID },
  {
    words: "too long a prompt",
    messages: LONG,
    status: 400,
    code: "context_length_exceeded",
    ...INVALID,
    not: ["completions", "count_tokens"],
  },
];

async function ask(
  started: Started,
  { path, body }: Dialect,
  asked: Asked,
): Promise<{ status: number; json: unknown }> {
  const { origin } = started.sidecar;
  const { host } = new URL(origin);
  const bytes = Buffer.from(asked.body ?? JSON.stringify(body(asked.messages ?? HELLO)));
  const headers = {
    host,
    "content-type": "application/json",
    authorization: `Bearer ${started.key}`,
    "content-length": String(bytes.length),
    ...asked.headers,
  };
  const sent = request(`${origin}/t/t1${path}`, {
    method: asked.method ?? "POST",
    setHost: false,
    headers: Object.entries(headers).flatMap(([name, value]) => [value].flat().flatMap((one) => [name, one])),
    agent: false,
  });
  return new Promise((resolve, reject) => {
    sent.on("error", reject);
    sent.on("response", async (response) =>
      resolve({ status: response.statusCode!, json: JSON.parse(await text(response)) }),
    );
    sent.flushHeaders();
    sent.write(bytes);
    if (asked.headers?.["content-length"] === undefined) sent.end();
  });
}

describe("a refusal", () => {
  it.each(REFUSALS)(
    "($words) is the same in every dialect (O.5), and on record where it passes the gate (O.12)",
    async ({ words: _, not = [], ...refusal }) => {
      const passesGate = refusal.body !== undefined || refusal.messages !== undefined;
      const started = await startTestSidecar(await scriptedEngine(RULES, { maxModelLen: 400 }));
      const { status, type, code, messagesType } = refusal;
      for (const [name, dialect] of Object.entries(DIALECTS)) {
        if (not.includes(name)) continue;
        const answer = await ask(started, dialect, refusal);
        const error = name === "messages" || name === "count_tokens" ? { type: messagesType } : { type, code };
        expect([name, answer.status, answer.json]).toMatchObject([name, status, { error }]);
      }
      // A count of tokens is no call.
      const calls = Object.keys(DIALECTS).filter((name) => !not.includes(name) && name !== "count_tokens");
      const { uncaptured, manifest } = await started.sealed();
      expect(uncaptured.map((one) => one.lost_tokens)).toEqual(passesGate ? calls.map(() => false) : []);
      if (passesGate) expect(manifest?.counts).toMatchObject({ calls: calls.length });
    },
  );

  it("(a sealed trajectory) is the same in every dialect (O.5)", async () => {
    const started = await startTestSidecar(await scriptedEngine(RULES), { secrets: { ownerKey: "owner-key" } });
    const seal = { path: "/seal", body: () => ({}) };
    expect((await ask(started, seal, { headers: { authorization: "Bearer owner-key" } })).status).toBe(200);
    for (const [name, dialect] of Object.entries(DIALECTS)) {
      if (name === "count_tokens") continue;
      const answer = await ask(started, dialect, {});
      const error = name === "messages" ? { type: INVALID.type } : { type: INVALID.type, code: "trajectory_sealed" };
      expect([name, answer.status, answer.json]).toMatchObject([name, 410, { error }]);
    }
  });
});

describe("the models", () => {
  const MODEL = "org/a model:7";
  async function start() {
    const started = await startTestSidecar(await scriptedEngine(RULES, { model: MODEL }), { model: MODEL });
    const { endpoint } = started.sidecar;
    const options = { apiKey: endpoint.api_key, maxRetries: 0 };
    const openai = new OpenAI({ baseURL: endpoint.openai_base_url, ...options });
    const anthropic = new Anthropic({ baseURL: endpoint.anthropic_base_url, ...options });
    return { ...started, openai, anthropic };
  }

  it("are listed and told one by one to OpenAI's SDK, also with a slash in the name (O.6)", async () => {
    const { openai, url, key } = await start();
    const listed = [];
    for await (const model of openai.models.list()) listed.push(model);
    expect(listed).toMatchObject([{ id: MODEL, object: "model" }]);
    expect(await openai.models.retrieve(MODEL)).toEqual(listed[0]);
    const plain = await fetch(`${url}/models/${MODEL}`, { headers: { authorization: `Bearer ${key}` } });
    expect(await plain.json()).toEqual(listed[0]);
    for (const unknown of ["other", "a/b", "%", "../t1"]) {
      await expect(openai.models.retrieve(unknown)).rejects.toMatchObject({ status: 404, code: "not_found" });
    }
  });

  it("are listed and told one by one to Anthropic's SDK (O.6)", async () => {
    const { anthropic } = await start();
    const listed = [];
    for await (const model of anthropic.models.list({ limit: 20 })) listed.push(model);
    expect(listed).toMatchObject([{ id: MODEL, type: "model", display_name: MODEL }]);
    expect(Date.parse(listed[0]!.created_at)).not.toBeNaN();
    expect(await anthropic.models.retrieve(MODEL)).toEqual(listed[0]);
    await expect(anthropic.models.retrieve("other")).rejects.toMatchObject({
      status: 404,
      error: { type: "error", error: { type: "not_found_error" } },
    });
  });

  it("are told to nobody without the key, in the words of who asks (O.5)", async () => {
    const { url } = await start();
    const told = async (headers: Record<string, string>) =>
      ((await (await fetch(`${url}/models/x`, { headers })).json()) as { error: object }).error;
    expect(await told({})).toMatchObject({ code: "invalid_api_key" });
    expect(await told({ "anthropic-version": "2023-06-01" })).toMatchObject({ type: "authentication_error" });
  });
});
