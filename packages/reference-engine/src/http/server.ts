import { randomUUID } from "node:crypto";
import type { HttpBindings } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { type Context, Hono, type MiddlewareHandler } from "hono";
import type { Engine } from "../engine.js";
import { toApiError } from "../errors.js";
import { readBodyText } from "./body.js";
import { readChatCall } from "./chat-request.js";
import { readCompletionCall } from "./completion-request.js";
import { strikeBeforeHeaders } from "./fault-replies.js";
import { readGenerateCall } from "./generate-request.js";
import { answer, type Exchange } from "./generation.js";
import { listModels, weightInfo } from "./model-info.js";
import { Reply } from "./reply.js";
import { gauges, queueFaults, setWeightVersion, waitForGauge } from "./test-routes.js";
import { detokenizeIds, tokenizeText } from "./tokenize.js";
import { addWeightRoutes } from "./weight-routes.js";

/** What vLLM version the wire shapes are those of, and whose they really are. */
const VERSION = "0.30.0+tito";

type App = Hono<{ Bindings: HttpBindings }>;
type EngineContext = Context<{ Bindings: HttpBindings }>;

/** All routes of the engine. */
export function createApp(engine: Engine): App {
  const app: App = new Hono();
  app.onError((error, c) => {
    const apiError = toApiError(error);
    return c.json(apiError.body(), apiError.status as 500);
  });
  app.notFound((c) => c.json({ detail: "Not Found" }, 404));
  app.post("/v1/chat/completions", generating(engine, readChatCall));
  app.post("/v1/completions", generating(engine, readCompletionCall));
  app.post("/inference/v1/generate", generating(engine, readGenerateCall));
  if (engine.options.testMode) app.use(plainFaults(engine));
  app.post("/tokenize", async (c) => c.json(tokenizeText(engine, await readBodyText(c.env.incoming))));
  app.post("/detokenize", async (c) => c.json(detokenizeIds(engine, await readBodyText(c.env.incoming))));
  app.get("/v1/models", (c) => c.json(listModels(engine)));
  app.get("/health", (c) => c.body(null, 200));
  app.get("/version", (c) => c.json({ version: VERSION }));
  app.get("/weight_info", (c) => c.json(weightInfo(engine)));
  addWeightRoutes(app, engine);
  if (engine.options.testMode) addTestRoutes(app, engine);
  return app;
}

/** Routes that only tests may have: they make the engine misbehave and show what it saw. */
function addTestRoutes(app: App, engine: Engine): void {
  app.post("/test/faults", async (c) => c.json(queueFaults(engine, await readBodyText(c.env.incoming))));
  app.get("/test/faults", (c) => c.json({ pending: engine.board.pending() }));
  app.delete("/test/faults", (c) => {
    engine.board.clear();
    return c.json({ pending: [] });
  });
  app.post("/test/release", (c) => c.json({ released: engine.board.release() }));
  app.post("/test/weight_version", async (c) => c.json(setWeightVersion(engine, await readBodyText(c.env.incoming))));
  app.post("/test/wait", async (c) =>
    c.json(await waitForGauge(engine, await readBodyText(c.env.incoming), c.req.raw.signal)),
  );
  app.get("/test/state", (c) => c.json(gauges(engine)));
  app.get("/test/log", (c) => c.json({ entries: engine.log.entries() }));
}

/** Routes that sample nothing can go wrong too, before they answer. Stands behind the routes that sample, which do this themselves. */
function plainFaults(engine: Engine): MiddlewareHandler<{ Bindings: HttpBindings }> {
  return async (c, next) => {
    const fault = c.req.path.startsWith("/test/") ? null : engine.board.take(c.req.path, "", { onlyNamed: true });
    const reply = fault === null ? null : new Reply(c.env.outgoing, requestIdOf(c));
    if (fault !== null && reply !== null && (await strikeBeforeHeaders(engine, fault, reply)))
      return RESPONSE_ALREADY_SENT;
    return next();
  };
}

function requestIdOf(c: EngineContext): string {
  return c.req.header("x-request-id") ?? randomUUID().replaceAll("-", "");
}

/** A route that samples: from here on the reply is written to the socket itself. */
function generating(engine: Engine, read: Exchange["read"]): (c: EngineContext) => Promise<Response> {
  return async (c) => {
    const bodyText = await readBodyText(c.env.incoming);
    await answer(engine, { path: c.req.path, bodyText, reply: new Reply(c.env.outgoing, requestIdOf(c)), read });
    return RESPONSE_ALREADY_SENT;
  };
}
