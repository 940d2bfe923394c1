/** One thread, and the requests that wait for its answers. A thread that has ended answers nothing any more. */
import type { Worker } from "node:worker_threads";
import { TitoError } from "@tito/format";
import type { OperationName, Operations, Response } from "./protocol.js";

export class Connection {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, { resolve: (value: never) => void; reject: (error: TitoError) => void }>();
  #calls = 0;
  #dead: TitoError | undefined;

  constructor(worker: Worker) {
    this.#worker = worker;
    worker.on("message", (response: Response) => {
      const waiting = this.#waiting.get(response.call);
      this.#waiting.delete(response.call);
      if (response.ok) waiting?.resolve(response.value as never);
      else waiting?.reject(new TitoError(response.error.code, response.error.message, hintOf(response.error.hint)));
    });
    worker.on("error", (cause) =>
      this.#die(new TitoError("internal", `the renderer's thread failed: ${cause.message}`, { cause })),
    );
    worker.on("exit", () => this.#die(new TitoError("internal", "the renderer's thread has ended")));
    worker.unref();
  }

  /** False once the thread has ended. */
  get alive(): boolean {
    return this.#dead === undefined;
  }

  ask<Name extends OperationName>(name: Name, ...args: Operations[Name]["args"]): Promise<Operations[Name]["result"]> {
    if (this.#dead !== undefined) return Promise.reject(this.#dead);
    const call = ++this.#calls;
    return new Promise((resolve, reject) => {
      this.#waiting.set(call, { resolve, reject });
      this.#worker.ref();
      this.#worker.postMessage({ call, name, args });
    }).finally(() => {
      if (this.#waiting.size === 0) this.#worker.unref();
    }) as Promise<Operations[Name]["result"]>;
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }

  #die(error: TitoError): void {
    this.#dead ??= error;
    for (const { reject } of this.#waiting.values()) reject(this.#dead);
    this.#waiting.clear();
  }
}

const hintOf = (hint: string | undefined): { hint?: string } => (hint === undefined ? {} : { hint });
