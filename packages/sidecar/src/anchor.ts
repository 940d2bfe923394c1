/**
 * The journal's chain head `(seq, digest, bytes)` goes to places that the agent can not rewrite: a line on a descriptor that the parent
 * reads, a header on the next upstream request, and the answer to the seal.
 */
import { write } from "node:fs";
import type { AnchoredHead } from "@tito/format";

/** Value of the `x-tito-head` header. */
export function anchorHeader(head: AnchoredHead): string {
  return `trajectory=${head.trajectory};boot=${head.boot};seq=${head.seq};digest=${head.digest};bytes=${head.bytes}`;
}

/** Writes lines to an inherited descriptor, in order, without ever blocking or failing a call: a parent that does not read loses anchors only. */
export class AnchorSink {
  private queue = Promise.resolve();
  private waiting = 0;

  constructor(
    private readonly fd: number | null,
    private readonly onFailure: (detail: string) => void,
  ) {}

  put(line: string): void {
    const { fd } = this;
    if (fd === null || this.waiting >= WAITING_MAX) return;
    this.waiting += 1;
    this.queue = this.queue.then(async () => {
      await writeLine(fd, Buffer.from(`${line}\n`)).catch((error: NodeJS.ErrnoException) =>
        this.onFailure(error.code ?? error.message),
      );
      this.waiting -= 1;
    });
  }

  /** Resolves when everything put so far was written or failed. */
  flushed(): Promise<void> {
    return this.queue;
  }
}

const WAITING_MAX = 10_000;

async function writeLine(fd: number, line: Buffer): Promise<void> {
  let offset = 0;
  while (offset < line.length) {
    offset += await new Promise<number>((resolve, reject) => {
      write(fd, line, offset, line.length - offset, null, (error, written) =>
        error === null ? resolve(written) : reject(error),
      );
    });
  }
}
