import { once } from "node:events";
import type { ServerResponse } from "node:http";

/** How a connection is broken off: reset, closed within the body, or closed after a proper end of the body. */
export type Cut = "rst" | "fin" | "end";

/**
 * One HTTP reply, written straight to the socket: the engine has to be able to stop in the middle of it.
 * `gone` fires when the client closes the connection before the reply is complete.
 */
export class Reply {
  readonly gone: AbortSignal;
  readonly requestId: string;
  readonly #outgoing: ServerResponse;

  constructor(outgoing: ServerResponse, requestId: string) {
    const controller = new AbortController();
    this.gone = controller.signal;
    this.requestId = requestId;
    this.#outgoing = outgoing;
    outgoing.on("close", () => {
      if (!outgoing.writableFinished) controller.abort();
    });
    // A reset while writing is a client that went; `gone` tells.
    outgoing.on("error", () => controller.abort());
  }

  get started(): boolean {
    return this.#outgoing.headersSent;
  }

  json(status: number, value: unknown, headers: Readonly<Record<string, string>> = {}): void {
    this.text(status, "application/json", JSON.stringify(value), headers);
  }

  text(status: number, contentType: string, body: string, headers: Readonly<Record<string, string>> = {}): void {
    this.#head(status, { "content-type": contentType, "content-length": String(Buffer.byteLength(body)), ...headers });
    this.#outgoing.end(body);
  }

  /** Starts an event stream. Headers leave at once. */
  startEvents(): void {
    this.#head(200, { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" });
    this.#outgoing.flushHeaders();
  }

  /** One event; waits while the client reads more slowly than the engine writes. */
  async event(data: string): Promise<void> {
    if (this.gone.aborted || this.#outgoing.writableEnded) return;
    if (!this.#outgoing.write(`data: ${data}\n\n`)) {
      await once(this.#outgoing, "drain", { signal: this.gone }).catch(() => {});
    }
  }

  endEvents(): void {
    if (!this.gone.aborted) this.#outgoing.end();
  }

  /** Breaks off. What was written before still reaches the client, unless the connection is reset. */
  cut(how: Cut): void {
    const { socket } = this.#outgoing;
    if (how === "end") this.#outgoing.end();
    else if (how === "rst") socket?.resetAndDestroy();
    else socket?.end(() => socket.destroy());
  }

  #head(status: number, headers: Readonly<Record<string, string>>): void {
    this.#outgoing.writeHead(status, { "x-request-id": this.requestId, ...headers });
  }
}
