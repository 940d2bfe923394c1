/**
 * The last stop: bytes to the harness, and the evidence whether they arrived. `delivered` means that the kernel took all bytes
 * before any socket error; what the harness does with its socket afterwards does not matter.
 */
import type { ServerResponse } from "node:http";

/** A harness that stops reading for this long counts as gone: its answer must not hold the engine for ever. */
const STALL_MS = 120_000;

export interface Delivery {
  outcome: "delivered" | "failed";
  bytes: number;
  status: number;
  detail: string | null;
}

/** Headers of an answer that is one body. */
export const JSON_BODY = { "content-type": "application/json" };

/** One waiting harness. Writing to a harness that has gone is no error; it is noticed through `gone`. */
export class Client {
  private bytes = 0;
  private status = 0;
  private lost: string | null = null;
  private readonly watchers: (() => void)[] = [];
  private keepalive: NodeJS.Timeout | undefined;
  private headers: Record<string, string> = {};

  constructor(
    private readonly response: ServerResponse,
    private readonly stallMs: number = STALL_MS,
  ) {
    response.on("error", (error) => this.lose(error.message));
    response.on("close", () => {
      if (!response.writableFinished) this.lose("the harness closed the connection");
    });
    if (response.destroyed || response.socket?.destroyed === true) this.lose("the harness closed the connection");
  }

  get gone(): boolean {
    return this.lost !== null;
  }

  /** The 200 is out: from now on a failure is an event inside the stream. */
  get committed(): boolean {
    return this.status !== 0;
  }

  onGone(watcher: () => void): void {
    if (this.lost === null) this.watchers.push(watcher);
    else watcher();
  }

  /** Adds headers to a response that has not begun. */
  setHeader(name: string, value: string): void {
    this.headers[name] = value;
  }

  /** Begins an event stream. */
  beginStream(): void {
    this.begin({ "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" });
  }

  /** After `silenceMs` without a byte the stream is begun if need be, and `frame` is written, again and again. */
  keepAlive(silenceMs: number, frame: () => string): void {
    this.every(silenceMs, () => {
      this.beginStream();
      return frame();
    });
  }

  /**
   * The same for an answer that is one JSON body: white space before it, which every JSON parser skips (RFC 8259). Called when the engine
   * has taken the call, so that its refusals keep their status; a failure after the first space breaks the connection off.
   */
  keepBodyAlive(silenceMs: number): void {
    this.every(silenceMs, () => {
      this.begin(JSON_BODY);
      return " ";
    });
  }

  stopKeepAlive(): void {
    clearInterval(this.keepalive);
  }

  /** Writes a part of the stream; resolves when the harness keeps up, has gone, or `signal` says that nobody waits any more. */
  async write(text: string, signal: AbortSignal): Promise<void> {
    if (text === "") return;
    this.beginStream();
    this.keepalive?.refresh();
    if (this.gone || this.put(text)) return;
    await this.drained(signal);
  }

  /** Ends a stream with `text`, or sends a whole response when none was begun. Resolves with the evidence of delivery. */
  async finish(text: string, whole?: { status: number; headers: Record<string, string> }): Promise<Delivery> {
    this.stopKeepAlive();
    const { response } = this;
    const bytes = Buffer.from(text, "utf8");
    if (!this.gone && !this.committed && whole !== undefined) {
      this.status = whole.status;
      const length = String(bytes.length);
      response.writeHead(whole.status, { ...whole.headers, ...this.headers, "content-length": length });
    }
    if (!this.gone) {
      this.bytes += bytes.length;
      const unwatch = this.limitStall();
      await new Promise<void>((resolve) => {
        this.onGone(resolve);
        response.once("finish", resolve);
        response.end(bytes);
      });
      unwatch();
    }
    const outcome = response.writableFinished && this.lost === null ? "delivered" : "failed";
    return { outcome, bytes: this.bytes, status: this.status, detail: this.lost };
  }

  /** The answer can neither be completed nor replaced by an error: the harness must see a broken transfer, not half a body. */
  breakOff(why: string): Delivery {
    this.lose(why);
    this.response.destroy();
    return { outcome: "failed", bytes: this.bytes, status: this.status, detail: why };
  }

  private begin(headers: Record<string, string>): void {
    if (this.committed || this.gone) return;
    this.status = 200;
    this.response.writeHead(200, { ...headers, ...this.headers });
    this.response.flushHeaders();
  }

  private every(silenceMs: number, frame: () => string): void {
    this.stopKeepAlive();
    if (silenceMs <= 0) return;
    this.keepalive = setInterval(() => {
      if (!this.gone && !this.response.writableNeedDrain) this.put(frame());
    }, silenceMs);
    this.keepalive.unref();
  }

  private put(text: string): boolean {
    const bytes = Buffer.from(text, "utf8");
    this.bytes += bytes.length;
    return this.response.write(bytes);
  }

  private async drained(signal: AbortSignal): Promise<void> {
    const { response } = this;
    await new Promise<void>((resolve) => {
      const unwatch = this.limitStall();
      const done = (): void => {
        unwatch();
        response.off("drain", done);
        signal.removeEventListener("abort", done);
        resolve();
      };
      response.once("drain", done);
      signal.addEventListener("abort", done, { once: true });
      this.onGone(done);
      if (signal.aborted) done();
    });
  }

  /** Slow is not stopped: a socket's timeout runs only while the kernel takes nothing for it. Returns what ends the watch. */
  private limitStall(): () => void {
    const { response } = this;
    const stop = (): void => void response.destroy(new Error("the harness stopped reading"));
    response.setTimeout(this.stallMs);
    response.once("timeout", stop);
    return () => {
      response.off("timeout", stop);
      // After its end the socket belongs to the server's keep-alive timeout again.
      if (!response.writableFinished) response.setTimeout(0);
    };
  }

  private lose(why: string): void {
    if (this.lost !== null) return;
    this.lost = why;
    this.stopKeepAlive();
    for (const watcher of this.watchers.splice(0)) watcher();
  }
}
