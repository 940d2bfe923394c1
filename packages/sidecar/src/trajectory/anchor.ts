/**
 * The journal's chain head `(seq, digest, bytes)` goes to places that the agent can not rewrite: a line on a descriptor that the parent
 * reads, a header on the next upstream request, and the answer to the seal.
 */
import { createWriteStream } from "node:fs";
import { Socket } from "node:net";
import type { Writable } from "node:stream";
import type { AnchoredHead } from "@tito/format";

/** Value of the `x-tito-head` header. */
export function anchorHeader(head: AnchoredHead): string {
  return `trajectory=${head.trajectory};boot=${head.boot};seq=${head.seq};digest=${head.digest};bytes=${head.bytes}`;
}

/** Lines that wait for a parent that does not read are bounded. */
const WAITING_BYTES_MAX = 1024 * 1024;
const FLUSH_TIMEOUT_MS = 1000;

/** Writes lines to an inherited descriptor, in order, without ever blocking or failing a call: a parent that does not read loses anchors only. */
export class AnchorSink {
  private readonly stream: Writable | null;

  constructor(
    fd: number | null,
    private readonly onFailure: (detail: string) => void,
  ) {
    this.stream = fd === null ? null : openDescriptor(fd);
    this.stream?.on("error", (error) => onFailure(error.message));
  }

  put(line: string): void {
    const { stream } = this;
    if (stream === null || stream.destroyed) return;
    if (stream.writableLength > WAITING_BYTES_MAX) this.onFailure("the parent does not read");
    else stream.write(`${line}\n`);
  }

  /** Resolves when everything put so far was written or failed, or after a second. */
  async flushed(): Promise<void> {
    const { stream } = this;
    if (stream === null || stream.destroyed) return;
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, FLUSH_TIMEOUT_MS);
    });
    const written = new Promise<void>((resolve) => {
      stream.once("close", resolve);
      stream.write("", () => resolve());
    });
    await Promise.race([written, timeout]);
    clearTimeout(timer);
  }
}

/** A pipe or socket is written without blocking a thread; anything else is a file. */
function openDescriptor(fd: number): Writable {
  try {
    const socket = new Socket({ fd, readable: false, writable: true });
    socket.unref();
    return socket;
  } catch {
    return createWriteStream("", { fd, autoClose: false });
  }
}
