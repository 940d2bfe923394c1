/**
 * HTTP to the engine. The destination is frozen at start: a path from our own table is appended to it, nothing is resolved.
 * No timeout runs once connected (a long generation is silent for minutes); redirects are answers, never followed.
 * A request that the engine may have begun to work on is never sent twice from here: whoever asks again puts that on record first.
 */
import * as http from "node:http";
import * as https from "node:https";
import type { Socket } from "node:net";
import { TitoError } from "@tito/format";

const CONNECT_TIMEOUT_MS = 10_000;
/** Idle connections are closed before the engine closes them (uvicorn, under vLLM and SGLang, does so after 5 s and says nothing of it). */
const IDLE_MS = 4_000;
/** Of a whole reply, streamed or not. */
const REPLY_BYTES_MAX = 256 * 1024 * 1024;

interface UpstreamRequest {
  method: "GET" | "POST";
  /** Begins with a slash; appended to the frozen base. */
  path: string;
  body?: string;
  headers?: Record<string, string>;
  signal?: AbortSignal;
  /** Sent twice it does no harm: nothing is sampled that anybody would have. A GET always is. */
  repeatable?: boolean;
}

type TakePiece = (piece: Uint8Array) => Promise<boolean>;

export interface UpstreamResponse {
  status: number;
  header(name: string): string | null;
  /**
   * Hands the body on piece by piece. The next piece is read when `take` has resolved, which slows the engine's sending down; when it says false, the
   * rest is not read.
   * @throws TitoError `upstream_unavailable` when it breaks off, `upstream_invalid` when it is compressed or beyond 256 MiB.
   */
  read(take: TakePiece): Promise<void>;
  /** The whole body; fails as `read` does. */
  text(): Promise<string>;
}

export interface Upstream {
  readonly base: string;
  /** @throws TitoError `upstream_unavailable` when no answer began; an abort rejects with the signal's reason. */
  send(request: UpstreamRequest): Promise<UpstreamResponse>;
  close(): void;
}

/** `/v1` at the end of the given URL is taken off: both spellings name the same engine. */
export function openUpstream(url: string, key: string | null): Upstream {
  const base = new URL(url);
  const prefix = base.pathname.replace(/\/+$/, "").replace(/\/v1$/, "");
  const transport = base.protocol === "https:" ? https : http;
  const agent = new transport.Agent({
    keepAlive: true,
    maxSockets: Number.POSITIVE_INFINITY,
    maxFreeSockets: 256,
    timeout: IDLE_MS,
  });
  const target = {
    hostname: base.hostname.replace(/^\[|\]$/g, ""),
    port: base.port === "" ? (base.protocol === "https:" ? 443 : 80) : Number(base.port),
  };

  const attempt = (request: UpstreamRequest): Promise<UpstreamResponse> =>
    new Promise((resolve, reject) => {
      const body = request.body === undefined ? undefined : Buffer.from(request.body, "utf8");
      const outgoing = transport.request({
        ...target,
        agent,
        method: request.method,
        path: prefix + request.path,
        headers: {
          host: base.host,
          accept: "*/*",
          "accept-encoding": "identity",
          ...(body === undefined ? {} : { "content-type": "application/json", "content-length": String(body.length) }),
          ...(key === null ? {} : { authorization: `Bearer ${key}` }),
          ...request.headers,
        },
      });
      // A reply that is no HTTP is reported to the request, also in the middle of its body.
      let fault: Error | null = null;
      const abort = (): void => void outgoing.destroy(new Aborted());
      request.signal?.addEventListener("abort", abort, { once: true });
      if (request.signal?.aborted === true) abort();
      outgoing.on("socket", (socket) => limitConnect(socket, outgoing));
      outgoing.on("response", (incoming) => {
        incoming.on("close", () => request.signal?.removeEventListener("abort", abort));
        resolve(readResponse(incoming, base.host, () => fault));
      });
      outgoing.on("error", (error) => {
        if (isParseError(error)) fault = error;
        request.signal?.removeEventListener("abort", abort);
        reject(new SendFailure(error, outgoing.reusedSocket));
      });
      outgoing.end(body);
    });

  return {
    base: `${base.protocol}//${base.host}${prefix}`,
    close: () => agent.destroy(),
    send: async (request) => {
      for (;;) {
        try {
          return await attempt(request);
        } catch (error) {
          if (!(error instanceof SendFailure)) throw error;
          request.signal?.throwIfAborted();
          const stale = error.reused && isReset(error.reason);
          // An engine that starts again closes all of them: the next request gets a fresh one.
          if (stale) closeIdle(agent);
          if (stale && (request.method === "GET" || request.repeatable === true || isUnsent(error.reason))) continue;
          throw unanswered(base.host, stale ? new StaleConnection(error.reason.message) : error.reason);
        }
      }
    },
  };
}

/** The engine closed a connection that was kept open, while a request was on its way: it may have read it, or not. */
export class StaleConnection extends Error {}

class Aborted extends Error {}

class SendFailure extends Error {
  constructor(
    readonly reason: Error,
    readonly reused: boolean,
  ) {
    super(reason.message);
  }
}

/** The kernel took not all of the request: the engine cannot have read its end. */
function isUnsent(error: Error): boolean {
  return (error as NodeJS.ErrnoException).code === "EPIPE";
}

function closeIdle({ freeSockets }: http.Agent): void {
  for (const sockets of Object.values(freeSockets)) for (const socket of sockets ?? []) socket.destroy();
}

function isReset(error: Error): boolean {
  const code = (error as NodeJS.ErrnoException).code;
  return code === "ECONNRESET" || code === "EPIPE";
}

function isParseError(error: Error): boolean {
  return (error as NodeJS.ErrnoException).code?.startsWith("HPE_") ?? false;
}

function describe(error: Error): string {
  const code = (error as NodeJS.ErrnoException).code;
  if (isParseError(error)) return `it breaks HTTP: ${error.message.replace(/^Parse Error: /, "")} (${code})`;
  return code ?? error.message;
}

function unanswered(host: string, cause: Error): TitoError {
  if (cause instanceof StaleConnection) {
    const message = `the engine at ${host} closed a connection while a request was on its way: it may have begun to answer`;
    return new TitoError("upstream_unavailable", message, { cause, hint: "check the engine's log" });
  }
  const broken = isParseError(cause);
  const message = broken
    ? `the engine at ${host} sent no readable answer: ${describe(cause)}`
    : `the engine at ${host} did not answer: ${describe(cause)}`;
  const hint = broken ? BETWEEN : "check --upstream and that the engine is running";
  return new TitoError("upstream_unavailable", message, { cause, hint });
}

const BETWEEN = "check what stands between the sidecar and the engine";

function limitConnect(socket: Socket, outgoing: http.ClientRequest): void {
  if (!socket.connecting) return;
  const timer = setTimeout(
    () => outgoing.destroy(Object.assign(new Error("connect timed out"), { code: "ETIMEDOUT" })),
    CONNECT_TIMEOUT_MS,
  );
  const stop = (): void => clearTimeout(timer);
  socket.once("connect", stop);
  socket.once("close", stop);
}

/** `fault`: what was wrong with its HTTP, if anything was. */
function readResponse(incoming: http.IncomingMessage, host: string, fault: () => Error | null): UpstreamResponse {
  const read = (take: TakePiece): Promise<void> => readPieces(incoming, { host, fault, take });
  return {
    status: incoming.statusCode ?? 0,
    header: (name) => {
      const value = incoming.headers[name];
      return typeof value === "string" ? value : (value?.[0] ?? null);
    },
    read,
    text: async () => {
      const pieces: Uint8Array[] = [];
      await read(async (piece) => pieces.push(piece) > 0);
      return Buffer.concat(pieces).toString("utf8");
    },
  };
}

/** Why a reply's body cannot be read as it stands; null when it can. Nothing is ever inflated: a few compressed bytes could be any number of plain ones. */
function encodingProblem({ headers }: http.IncomingMessage): string | null {
  const content = (headers["content-encoding"] ?? "").trim();
  const transfer = (headers["transfer-encoding"] ?? "").trim();
  if (/^chunked(\s*,\s*chunked)+$/i.test(transfer))
    return `says Transfer-Encoding ${transfer.split(",").length} times (${transfer.slice(0, 40)}): where it ends cannot be known`;
  const encoded = [content, transfer].find((value) => !/^(identity|chunked|)$/i.test(value));
  return encoded === undefined ? null : `is encoded (${encoded.slice(0, 40)}) although only plain bytes are accepted`;
}

interface BodyReading {
  host: string;
  fault(): Error | null;
  take: TakePiece;
}

async function readPieces(incoming: http.IncomingMessage, { host, fault, take }: BodyReading): Promise<void> {
  const problem = encodingProblem(incoming);
  if (problem !== null) {
    incoming.destroy();
    throw invalid(`the reply of the engine at ${host} ${problem}`);
  }
  await new Promise<void>((resolve, reject) => {
    let bytes = 0;
    let taken: Promise<void> = Promise.resolve();
    const stop = (): void => void incoming.destroy();
    const give = async (piece: Buffer): Promise<void> => {
      bytes += piece.length;
      if (bytes > REPLY_BYTES_MAX)
        throw invalid(`the reply of the engine at ${host} is larger than ${REPLY_BYTES_MAX} bytes`);
      if (await take(piece)) {
        incoming.resume();
        return;
      }
      resolve();
      stop();
    };
    // What was handed on is dealt with first: the end of a reply that came at once, or breaks off, waits for no resume.
    const breakOff = (error: Error): void => void taken.then(() => reject(brokenOff(host, fault() ?? error)));
    const closedEarly = (): void => breakOff(new Error("the connection was closed"));
    incoming.on("data", (piece: Buffer) => {
      incoming.pause();
      taken = give(piece).catch((error: unknown) => {
        reject(error);
        stop();
      });
    });
    incoming.once("end", () => {
      incoming.off("close", closedEarly);
      void taken.then(resolve);
    });
    incoming.on("error", breakOff);
    incoming.once("close", closedEarly);
    if (incoming.destroyed) closedEarly();
  });
}

function brokenOff(host: string, cause: Error): TitoError {
  return new TitoError("upstream_unavailable", `the reply of the engine at ${host} broke off: ${describe(cause)}`, {
    cause,
    hint: isParseError(cause) ? BETWEEN : "ask again; check the engine's log",
  });
}

function invalid(message: string): TitoError {
  return new TitoError("upstream_invalid", message, { hint: BETWEEN });
}
