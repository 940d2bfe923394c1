/** HTTP in: limits, the gate, and the routes. Whatever passes the gate is handed to its stop with the raw request and response. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { getRequestListener, type HttpBindings } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { TitoError } from "@tito/format";
import { type Context, Hono } from "hono";
import { serveCall } from "./call.js";
import type { SidecarConfig } from "./config/config.js";
import { endpointOf } from "./config/endpoint.js";
import type { Log } from "./config/log.js";
import { conversationOf } from "./decide/decide.js";
import { codecOf, dialectOfPath } from "./dialect/dialects.js";
import { countTokensReply, messagesCodec } from "./dialect/messages.js";
import { modelReply, modelsReply, type ServedModel } from "./dialect/models.js";
import { readBody } from "./gate/body.js";
import { admit, bearerOf, type GateRules, headerMap, type Route } from "./gate/gate.js";
import type { Engine } from "./prompt/engine.js";
import { fitLateSystem } from "./prompt/late-system.js";
import { refuseCompletion } from "./record/completions.js";
import { Client } from "./record/release.js";
import { dialectError } from "./sample/engine-failure.js";
import type { SealReport } from "./trajectory/seal.js";
import type { Trajectory } from "./trajectory/trajectory.js";
import type { TrajectoryTable } from "./trajectory/trajectory-table.js";

/** Set explicitly, all of them: the defaults are made for web pages. */
export const SERVER_LIMITS = {
  headersTimeoutMs: 15_000,
  requestTimeoutMs: 120_000,
  keepAliveTimeoutMs: 75_000,
  checkIntervalMs: 5_000,
  headerBytes: 32 * 1024,
  headers: 100,
  connections: 2_048,
};

export interface ServerParts {
  config: SidecarConfig;
  engine: Engine;
  table: TrajectoryTable;
  log: Log;
  /** `http://host:port`, once it listens. */
  origin(): string;
  seal(trajectory: Trajectory): Promise<SealReport>;
  /** What stands in the way of new calls; null: ready. */
  notReady(): Promise<string | null>;
  limits: typeof SERVER_LIMITS;
}

type Bindings = { Bindings: HttpBindings };

/** The server, not yet listening. `rules` is asked at each request: the port is known only after listening. */
export function buildServer(parts: ServerParts, rules: () => GateRules): Server {
  const { limits } = parts;
  const admitted: Admitted = new WeakMap();
  const listener = getRequestListener(routes(parts, admitted).fetch, { overrideGlobalObjects: false });
  const server = createServer(
    {
      headersTimeout: limits.headersTimeoutMs,
      requestTimeout: limits.requestTimeoutMs,
      keepAliveTimeout: limits.keepAliveTimeoutMs,
      connectionsCheckingInterval: limits.checkIntervalMs,
      maxHeaderSize: limits.headerBytes,
    },
    (request, response) => {
      try {
        if (request.rawHeaders.length > 2 * limits.headers) {
          tooManyHeaders(response);
          return;
        }
        admitted.set(request, admit(gateRequest(request), rules()));
        void listener(request, response);
      } catch (error) {
        fail(request, response, error);
      }
    },
  );
  // Node drops what is above the count without a word: one more is let in, so that the gate sees that there are too many.
  server.maxHeadersCount = limits.headers + 1;
  server.maxConnections = limits.connections;
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => shed(error, socket));
  return server;
}

/** Where the gate sent each request. */
type Admitted = WeakMap<IncomingMessage, Route>;

function routes(parts: ServerParts, admitted: Admitted): Hono<Bindings> {
  const app = new Hono<Bindings>();
  const handle = async (context: Context<Bindings>): Promise<Response> => {
    const { incoming, outgoing } = context.env;
    // The gate's table is the one table: hono only carries the request here.
    try {
      await serve(parts, admitted.get(incoming)!, incoming, outgoing);
    } catch (error) {
      fail(incoming, outgoing, error);
    }
    return RESPONSE_ALREADY_SENT;
  };
  app.get("/healthz", handle).get("/readyz", handle);
  app.get("/t/:trajectory/v1/models", handle).get("/t/:trajectory/v1/models/*", handle);
  for (const leaf of [
    "",
    "/seal",
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/responses",
    "/v1/messages",
    "/v1/messages/count_tokens",
  ]) {
    app.post(`/t/:trajectory${leaf}`, handle);
  }
  return app;
}

async function serve(
  parts: ServerParts,
  route: Route,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  const headers = headerMap(incoming.rawHeaders);
  const key = bearerOf(headers);
  switch (route.kind) {
    case "healthz":
      return sendJson(outgoing, 200, { status: "ok" });
    case "readyz": {
      const why = await parts.notReady();
      return sendJson(
        outgoing,
        why === null ? 200 : 503,
        why === null ? { status: "ready" } : { status: "not_ready", reason: why },
      );
    }
    case "models": {
      await parts.table.enter(route.trajectoryId, key);
      return sendText(outgoing, 200, modelsReply(servedModel(parts.engine), isAnthropic(incoming)));
    }
    case "model": {
      await parts.table.enter(route.trajectoryId, key);
      const reply = modelReply(servedModel(parts.engine), route.modelId, isAnthropic(incoming));
      if (reply === null) throw new TitoError("not_found", `there is no model ${JSON.stringify(route.modelId)} here`);
      return sendText(outgoing, 200, reply);
    }
    case "create": {
      const trajectory = await parts.table.enterAsOwner(route.trajectoryId, key, true);
      const { contextTokens } = parts.engine;
      return sendJson(
        outgoing,
        201,
        endpointOf(parts.origin(), trajectory.id, { apiKey: trajectory.apiKey, contextTokens }),
      );
    }
    case "seal": {
      const trajectory = await parts.table.enterAsOwner(route.trajectoryId, key, false);
      return sendJson(outgoing, 200, await parts.seal(trajectory));
    }
    case "count_tokens": {
      const trajectory = await parts.table.enter(route.trajectoryId, key);
      const parsed = messagesCodec.parse(await readBody(incoming));
      const request = await fitLateSystem(parsed, parts.engine.takesLateSystem);
      const conversation = conversationOf(trajectory, headers);
      return sendText(
        outgoing,
        200,
        countTokensReply(await parts.engine.source.countTokens({ request, conversation })),
      );
    }
    case "completions": {
      const receivedMs = Date.now();
      const trajectory = await parts.table.enter(route.trajectoryId, key);
      const body = await readBody(incoming);
      throw refuseCompletion(trajectory, { path: incoming.url ?? "", headers, body, receivedMs });
    }
    case "call": {
      const receivedMs = Date.now();
      const trajectory = await parts.table.enter(route.trajectoryId, key);
      const client = new Client(outgoing);
      const body = await readBody(incoming);
      const call = {
        dialect: route.dialect,
        codec: codecOf(route.dialect),
        path: incoming.url ?? "",
        headers,
        body,
        receivedMs,
      };
      return serveCall(call, trajectory, parts.engine, client);
    }
  }
}

function servedModel({ config, profile }: Engine): ServedModel {
  return { id: config.model, entry: profile.modelEntry };
}

/** Anthropic's clients send its version with every request. */
function isAnthropic(request: IncomingMessage): boolean {
  return request.headers["anthropic-version"] !== undefined;
}

function gateRequest(request: IncomingMessage): { method: string; target: string; rawHeaders: string[] } {
  return { method: request.method ?? "", target: request.url ?? "", rawHeaders: request.rawHeaders };
}

/**
 * A refusal is answered. Anything else is a bug of ours, and ends the process (docs/decisions/0085): the connection breaks, which every
 * harness takes for a reason to try again, and whoever started the process starts it again.
 */
function fail(request: IncomingMessage, response: ServerResponse, error: unknown): void {
  if (TitoError.is(error)) {
    refuse(request, response, error);
    return;
  }
  response.destroy();
  // Outside of every promise and handler: nothing can catch it.
  process.nextTick(() => {
    throw error;
  });
}

function tooManyHeaders(response: ServerResponse): void {
  response.writeHead(431, { connection: "close", "content-length": "0" }).end();
}

/** A refusal in the words of the dialect that the path, else the headers, belong to. The connection is closed: an unread body may follow. */
function refuse(request: IncomingMessage, response: ServerResponse, error: unknown): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const { status, body, headers } = codecOf(dialectOfPath(request.url ?? "", isAnthropic(request))).error(
    dialectError(error),
  );
  const close = request.complete ? {} : { connection: "close" };
  response.writeHead(status, { ...headers, ...close, "content-length": String(Buffer.byteLength(body)) });
  response.end(body);
}

function sendJson(response: ServerResponse, status: number, value: unknown): void {
  sendText(response, status, JSON.stringify(value));
}

function sendText(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { "content-type": "application/json", "content-length": String(Buffer.byteLength(text)) });
  response.end(text);
}

/** What is no HTTP, too large or too slow. */
function shed(error: NodeJS.ErrnoException, socket: Socket): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const status =
    error.code === "HPE_HEADER_OVERFLOW"
      ? "431 Request Header Fields Too Large"
      : error.code === "ERR_HTTP_REQUEST_TIMEOUT"
        ? "408 Request Timeout"
        : "400 Bad Request";
  // A sender that is shed does not close its own side: its socket goes as soon as the answer is out.
  socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
  socket.destroySoon();
}
