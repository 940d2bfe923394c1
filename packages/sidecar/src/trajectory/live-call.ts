/**
 * One running call and who waits for it. When its harness goes, the engine works on for the orphan grace, so that a retry can have
 * the answer; then the call is aborted. Sealing aborts it too.
 */

import type { AbortReason } from "../sample/sample.js";
import type { FinishedAnswer, Orphan } from "./replay.js";

export class LiveCall {
  private readonly controller = new AbortController();
  private grace: NodeJS.Timeout | undefined;
  private settleAnswer: (answer: FinishedAnswer | null) => void = () => undefined;
  private settleDone: () => void = () => undefined;
  private readonly answer = new Promise<FinishedAnswer | null>((resolve) => {
    this.settleAnswer = resolve;
  });
  /** Resolves when everything about the call is recorded. */
  readonly done = new Promise<void>((resolve) => {
    this.settleDone = resolve;
  });
  private orphaned: Orphan | null = null;
  private over = false;

  constructor(
    readonly callId: string,
    private readonly graceMs: number,
    private readonly onOrphan: (orphan: Orphan) => void,
  ) {}

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  /** Watches the harness that asked. */
  waitFor(client: { onGone(watcher: () => void): void }): void {
    client.onGone(() => this.leave());
  }

  abort(reason: AbortReason): void {
    clearTimeout(this.grace);
    this.controller.abort(reason);
  }

  /** Set once the harness has gone. */
  get orphan(): Orphan | null {
    return this.orphaned;
  }

  settle(answer: FinishedAnswer | null): void {
    this.over = true;
    clearTimeout(this.grace);
    this.settleAnswer(answer);
  }

  finished(): void {
    this.settle(null);
    this.settleDone();
  }

  private leave(): void {
    if (this.signal.aborted || this.over) return;
    this.orphaned = {
      callId: this.callId,
      answer: this.answer,
      adopt: () => {
        clearTimeout(this.grace);
        return () => this.startGrace();
      },
    };
    this.startGrace();
    this.onOrphan(this.orphaned);
  }

  private startGrace(): void {
    clearTimeout(this.grace);
    this.grace = setTimeout(() => this.abort("client_gone"), this.graceMs);
    this.grace.unref();
  }
}
