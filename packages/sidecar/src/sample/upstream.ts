/**
 * HTTP to the engine. The destination is frozen at start: a path from our own table is appended to it, nothing is resolved.
 * No timeout runs once connected (a long generation is silent for minutes); redirects are answers, never followed;
 * a keep-alive socket that the engine had closed meanwhile is not an error.
 */
import * as http from "node:http";
import * as https from "node:https";
import type { Socket } from "node:net";
import { TitoError } from "@tito/format";

const CONNECT_TIMEOUT_MS = 10_000;
/** Of a whole reply, streamed or not. */
const REPLY_BYTES_MAX = 256 * 1024 * 1024;

interface UpstreamRequest {
  method: "GET" | "POST";
  /** Begins with a slash; appended to the frozen base. */
  path: string;
  body?: string;
  headers?: Record<string, string>;
  signal?: AbortSignal;
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
  const agent = new transport.Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY, maxFreeSockets: 256 });
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
      const abort = (): void => void outgoing.destroy(new Aborted());
      request.signal?.addEventListener("abort", abort, { once: true });
      if (request.signal?.aborted === true) abort();
      outgoing.on("socket", (socket) => limitConnect(socket, outgoing));
      outgoing.on("response", (incoming) => {
        incoming.on("close", () => request.signal?.removeEventListener("abort", abort));
        resolve(readResponse(incoming));
      });
      outgoing.on("error", (error) => {
        request.signal?.removeEventListener("abort", abort);
        reject(new SendFailure(error, outgoing.reusedSocket));
      });
      outgoing.end(body);
    });

  return {
    base: `${base.protocol}//${base.host}${prefix}`,
    close: () => agent.destroy(),
    send: async (request) => {
      // Every idle socket may be stale (an engine restart closes them all): try until a fresh one is used.
      for (;;) {
        try {
          return await attempt(request);
        } catch (error) {
          if (!(error instanceof SendFailure)) throw error;
          request.signal?.throwIfAborted();
          if (error.reused && isReset(error.reason)) continue;
          throw new TitoError(
            "upstream_unavailable",
            `the engine at ${base.host} did not answer: ${describe(error.reason)}`,
            {
              cause: error.reason,
              hint: "check --upstream and that the engine is running",
            },
          );
        }
      }
    },
  };
}

class Aborted extends Error {}

class SendFailure extends Error {
  constructor(
    readonly reason: Error,
    readonly reused: boolean,
  ) {
    super(reason.message);
  }
}

function isReset(error: Error): boolean {
  const code = (error as NodeJS.ErrnoException).code;
  return code === "ECONNRESET" || code === "EPIPE";
}

function describe(error: Error): string {
  const code = (error as NodeJS.ErrnoException).code;
  return code ?? error.message;
}

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

function readResponse(incoming: http.IncomingMessage): UpstreamResponse {
  return {
    status: incoming.statusCode ?? 0,
    header: (name) => {
      const value = incoming.headers[name];
      return typeof value === "string" ? value : (value?.[0] ?? null);
    },
    read: (take) => readPieces(incoming, take),
    text: async () => {
      const pieces: Uint8Array[] = [];
      await readPieces(incoming, async (piece) => pieces.push(piece) > 0);
      return Buffer.concat(pieces).toString("utf8");
    },
  };
}

/** Nothing is ever inflated: a few compressed bytes could be any number of plain ones. */
async function readPieces(incoming: http.IncomingMessage, take: TakePiece): Promise<void> {
  const encodings = [incoming.headers["content-encoding"], incoming.headers["transfer-encoding"]];
  const encoded = encodings.find((value) => value !== undefined && !/^(identity|chunked|)$/i.test(value.trim()));
  if (encoded !== undefined) {
    incoming.destroy();
    throw invalid(`the engine's reply is encoded (${encoded.slice(0, 40)}) although only plain bytes are accepted`);
  }
  await new Promise<void>((resolve, reject) => {
    let bytes = 0;
    let taken: Promise<void> = Promise.resolve();
    const stop = (): void => void incoming.destroy();
    const give = async (piece: Buffer): Promise<void> => {
      bytes += piece.length;
      if (bytes > REPLY_BYTES_MAX) throw invalid(`the engine's reply is larger than ${REPLY_BYTES_MAX} bytes`);
      if (await take(piece)) {
        incoming.resume();
        return;
      }
      resolve();
      stop();
    };
    // What was handed on is dealt with first: the end of a reply that came at once, or breaks off, waits for no resume.
    const breakOff = (error: Error): void => void taken.then(() => reject(brokenOff(error)));
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

function brokenOff(cause: Error): TitoError {
  return new TitoError("upstream_unavailable", `the engine's reply broke off: ${describe(cause)}`, {
    cause,
    hint: "ask again; check the engine's log",
  });
}

function invalid(message: string): TitoError {
  return new TitoError("upstream_invalid", message, { hint: "check what stands between the sidecar and the engine" });
}
