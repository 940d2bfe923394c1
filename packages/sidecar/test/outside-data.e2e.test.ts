/**
 * Nothing from outside ends the process (O.114): requests of a harness on every route and in every dialect, and replies of an engine on every route, changed at
 * random. Seeds are fixed; `TITO_SEED=N` draws others and `TITO_FUZZ_RUNS=N` more of them (`npm run check:full outside-data`).
 */
import { request as ask, type IncomingMessage, type ServerResponse } from "node:http";
import fc from "fast-check";
import { describe, expect, it, onTestFinished } from "vitest";
import { engineSpeaking, type Shape } from "./engine-shapes.js";
import { type Started, scriptedEngine, serverBefore, startTestSidecar } from "./harness.js";
import { BODIES, REPLIES, strangeJson } from "./outside-data.js";
import { useBundle } from "./renderer-bundle.js";

/** Calls at a time: most of a bad reply's time is spent waiting to ask again. */
const AT_ONCE = 24;
const BATCHES = Math.max(1, Math.ceil(Number(process.env.TITO_FUZZ_RUNS ?? 144) / AT_ONCE));

const RULES = [
  { match: { lastContains: "call" }, reply: { content: "Well.", tool_calls: [{ name: "f", arguments: '{"a": 1}' }] } },
  { match: {}, reply: { reasoning: "Hm.", content: "Good day." } },
];

const ROUTES = [
  "/v1/chat/completions",
  "/v1/responses",
  "/v1/messages",
  "/v1/messages/count_tokens",
  "/v1/completions",
] as const;
const templateOf = (route: (typeof ROUTES)[number]): object =>
  BODIES[
    route === "/v1/messages/count_tokens"
      ? "/v1/messages"
      : route === "/v1/completions"
        ? "/v1/chat/completions"
        : route
  ];

const HEADERS: readonly [string, string][] = [
  ["idempotency-key", "k1"],
  ["x-stainless-retry-count", "1e400"],
  ["x-stainless-retry-count", "-1"],
  ["content-type", "application/json; charset=\xff"],
  ["content-encoding", "gzip"],
  ["content-encoding", "identity, identity"],
  ["anthropic-version", "\xe9"],
  ["x-session-id", "%00\xff".repeat(200)],
  ["x-claude-code-agent-id", "a/../\xe9"],
  ["x-codex-turn-metadata", `${"[".repeat(3000)}`],
  ["x-codex-turn-metadata", '{"request_kind":1,"turn_id":{}}'],
  ["session-id", "__proto__"],
  ["thread-id", "constructor"],
  ["user-agent", "x".repeat(9000)],
  ["expect", "100-continue"],
  ["cookie", "\x80"],
  ["authorization", "Bearer \xff"],
  ["x-api-key", "\xff"],
];

interface Answer {
  status: number;
  text: string;
}

/** One request, whatever it holds; rejects when there is no whole answer. */
function send(
  started: Started,
  {
    method = "POST",
    path,
    headers = {},
    body,
  }: { method?: string; path: string; headers?: Record<string, string>; body?: Buffer },
): Promise<Answer> {
  const { hostname, port } = new URL(started.url);
  return new Promise((resolve, reject) => {
    const outgoing = ask(
      {
        hostname,
        port,
        method,
        path,
        agent: false,
        headers: { authorization: `Bearer ${started.key}`, "content-type": "application/json", ...headers },
      },
      (response) => {
        const pieces: Buffer[] = [];
        response.on("data", (piece: Buffer) => pieces.push(piece));
        response.on("error", reject);
        response.on("end", () =>
          resolve({ status: response.statusCode ?? 0, text: Buffer.concat(pieces).toString("utf8") }),
        );
      },
    );
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

/** The process lives, and takes calls as before. */
async function stillServes(started: Started): Promise<void> {
  const good = await send(started, {
    path: "/t/t1/v1/chat/completions",
    body: Buffer.from('{"messages":[{"role":"user","content":"hi"}]}'),
  });
  expect(good).toMatchObject({ status: 200, text: expect.stringContaining("Good day.") });
}

const settings = { numRuns: BATCHES, endOnFailure: true, timeout: 120_000 };

/** What the process would end of, as `tito sidecar` watches it. */
function watchProcess(): unknown[] {
  const seen: unknown[] = [];
  const note = (error: unknown): void => void seen.push(error);
  process.on("uncaughtException", note);
  onTestFinished(() => void process.off("uncaughtException", note));
  return seen;
}

const request = fc.constantFrom(...ROUTES).chain((route) =>
  fc.record({
    path: fc.constantFrom("", "?x=%E0%A4%A", "?beta=true").map((query) => `/t/t1${route}${query}`),
    headers: fc
      .option(fc.constantFrom(...HEADERS), { nil: null, freq: 1 })
      .map((header) => (header === null ? {} : Object.fromEntries([header]))),
    body: strangeJson(templateOf(route)),
  }),
);
const targets = fc.record({
  method: fc.constantFrom("GET", "HEAD", "POST", "PUT", "OPTIONS", "DELETE"),
  path: fc.constantFrom(
    "/healthz",
    "/readyz",
    "/t/t1",
    "/t/t1/seal",
    "/t/t1/v1/models",
    "/t/t1/v1/models/policy",
    "/t/t1/v1/models/%E0%A4%A",
    "/t/t1/v1/models/../x",
    "/t/__proto__/v1/models",
    "//",
    "/t//v1/models",
    "/t/t1/v1/chat/completions/",
    "*",
    "/%",
    "/t/t1/v1/models/%00",
    "http://[::bad/healthz",
    "/t/t1/v1/models?%",
    "/healthz?%E0",
  ),
  headers: fc.constantFrom<Record<string, string>>(
    {},
    { "anthropic-version": "1" },
    { host: "999.999.999.999" },
    { host: "[::bad" },
    { host: "a b" },
    { host: "" },
  ),
});

const bundle = useBundle({ certified: false });

describe("requests as nobody promised them (O.114)", () => {
  it.each(["engine", "renderer"])("(%s source) get an answer each, and the process lives", async (source) => {
    const seen = watchProcess();
    const engine = await scriptedEngine(RULES, { maxModelLen: 4096 });
    const renderer = source === "renderer" ? { renderer: bundle.dir } : {};
    const started = await startTestSidecar(engine, { host: "127.0.0.1", onUncaptured: "flag", ...renderer });
    const batch = fc.array(fc.oneof({ weight: 4, arbitrary: request }, { weight: 1, arbitrary: targets }), {
      minLength: AT_ONCE,
      maxLength: AT_ONCE,
    });
    await fc.assert(
      fc.asyncProperty(batch, async (requests) => {
        for (const { status } of await Promise.all(requests.map((one) => send(started, one)))) {
          expect(status).toBeGreaterThanOrEqual(200);
          expect(status).not.toBe(500);
        }
        expect(seen).toEqual([]);
      }),
      settings,
    );
    await stillServes(started);
  });
});

/** Where an engine's answers differ from what was promised: status and headers, then bytes. */
interface StrangeReply {
  status: number;
  headers: Record<string, string>;
  body: Buffer;
  /** Breaks off behind this many bytes. */
  cut: number | null;
}

const framed = (bytes: Buffer): Buffer => Buffer.concat([Buffer.from("data: "), bytes, Buffer.from("\n\n")]);

const reply: fc.Arbitrary<StrangeReply> = fc.record({
  status: fc.constantFrom(200, 200, 200, 200, 200, 201, 204, 299, 302, 400, 413, 422, 429, 500, 503, 599, 999),
  headers: fc.constantFrom<Record<string, string>>(
    {},
    {},
    { "retry-after": "1e400" },
    { "retry-after": "9".repeat(400) },
    { "retry-after": "Wed, 21 Oct 275760 07:28:00 GMT" },
    { "retry-after": "-5" },
    { "content-type": "\xff" },
    { "content-encoding": "br" },
    { "x-a": "\xff".repeat(5000) },
  ),
  cut: fc.option(fc.nat(400), { nil: null, freq: 6 }),
  body: fc.oneof(
    ...REPLIES.map((template) =>
      fc
        .tuple(fc.boolean(), fc.array(strangeJson(template), { minLength: 1, maxLength: 3 }))
        .map(([whole, parts]) =>
          whole
            ? parts[0]!
            : Buffer.concat([
                framed(Buffer.from(JSON.stringify(template))),
                ...parts.map(framed),
                Buffer.from("data: [DONE]\n\n"),
              ]),
        ),
    ),
  ),
});

/** Writes a strange reply; a stream when the bytes look like one. */
function write(response: ServerResponse, { status, headers, body, cut }: StrangeReply): void {
  const type = body.subarray(0, 6).toString() === "data: " ? "text/event-stream" : "application/json";
  response.writeHead(status, { "content-type": type, ...headers });
  if (cut === null || cut >= body.length) response.end(body);
  else response.write(body.subarray(0, cut), () => response.destroy());
}

describe("replies as nobody promised them (O.114)", () => {
  const MARK = "strange-reply-";
  const shapes = ["vllm", "sglang", "fireworks", "llamacpp"] as const;
  it.each(
    shapes.flatMap((shape) =>
      (shape === "llamacpp" ? ["renderer"] : ["engine", "renderer"]).map((source) => [shape, source] as const),
    ),
  )("of %s, %s source: each call ends, and the process lives", async (shape, source) => {
    const seen = watchProcess();
    const embedded = await scriptedEngine(RULES, { maxModelLen: 4096 });
    const engine = shape === "vllm" ? embedded : await engineSpeaking(shape as Shape, embedded);
    let queue: StrangeReply[] = [];
    const front = await serverBefore(engine, (incoming: IncomingMessage, response) => {
      const next = /completion|generate/.test(incoming.url ?? "") ? queue.shift() : undefined;
      if (next === undefined) return false;
      incoming.resume().on("end", () => write(response, next));
      return true;
    });
    const renderer = source === "renderer" ? { renderer: bundle.dir } : {};
    const started = await startTestSidecar(front, { engine: shape, onUncaptured: "flag", ...renderer });
    const call = fc.record({
      route: fc.constantFrom("/v1/chat/completions", "/v1/responses", "/v1/messages"),
      stream: fc.boolean(),
      reply,
    });
    await fc.assert(
      fc.asyncProperty(fc.array(call, { minLength: AT_ONCE, maxLength: AT_ONCE }), async (calls) => {
        queue = calls.map((one) => one.reply);
        const answers = calls.map(({ route, stream }, index) => {
          const content = `${MARK}${index}`;
          const body =
            route === "/v1/responses" ? { input: content } : { messages: [{ role: "user", content }], max_tokens: 16 };
          // A body that was kept alive breaks off where it can not be completed.
          return send(started, {
            path: `/t/t1${route}`,
            body: Buffer.from(JSON.stringify({ model: "policy", stream, ...body })),
          });
        });
        for (const { status } of await Promise.all(answers)) expect(status).toBeGreaterThanOrEqual(200);
        expect(seen).toEqual([]);
      }),
      { ...settings, numRuns: Math.max(1, Math.ceil(BATCHES / 3)) },
    );
    queue = [];
    await stillServes(started);
  });

  it("about itself: it starts or says why not, and lists its model in both words", async () => {
    const seen = watchProcess();
    const embedded = await scriptedEngine(RULES);
    const entry = {
      id: "policy",
      object: "model",
      created: 1_790_000_000,
      owned_by: "vllm",
      max_model_len: 4096,
      display_name: "P",
      permission: [],
    };
    const info = {
      "/v1/models": { object: "list", data: [entry] },
      "/version": { version: "0.20.0" },
      "/weight_info": { weight_version: "1" },
    };
    const strange = fc
      .constantFrom(...(Object.keys(info) as (keyof typeof info)[]))
      .chain((path) => fc.record({ path: fc.constant(path), body: strangeJson(info[path]) }));
    await fc.assert(
      fc.asyncProperty(strange, async ({ path, body }) => {
        const front = await serverBefore(embedded, (incoming, response) => {
          if (incoming.url !== path) return false;
          response.writeHead(200, { "content-type": "application/json" }).end(body);
          return true;
        });
        const started = await startTestSidecar(front).catch((error: unknown) => error);
        if (started instanceof Error) {
          expect(started).toMatchObject({ code: expect.stringMatching(/^(upstream|engine|usage|unsupported)/) });
        } else {
          for (const headers of [{}, { "anthropic-version": "2023-06-01" }])
            for (const leaf of ["models", "models/policy"]) {
              const { status, text } = await send(started as Started, {
                method: "GET",
                path: `/t/t1/v1/${leaf}`,
                headers,
              });
              expect({ status, parsed: typeof JSON.parse(text) }).toEqual({ status: 200, parsed: "object" });
            }
          await (started as Started).sidecar.close("test");
        }
        expect(seen).toEqual([]);
      }),
      { ...settings, numRuns: 5 * BATCHES },
    );
  });
});
