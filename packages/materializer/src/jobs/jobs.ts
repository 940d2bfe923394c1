/** Runs tasks over worker threads and gives the results back in the order of the tasks, whatever thread was first. */
import { Worker } from "node:worker_threads";
import { type ErrorCode, TitoError } from "@tito/format";
import { CACHE_BYTES_MAX, RunCache } from "./run-cache.js";
import { runTask, type Task, type TaskResults } from "./tasks.js";
import { workerCode } from "./worker-code.js";

export type Answer =
  | { id: number; result: TaskResults[Task["kind"]] }
  | { id: number; failure: { code: ErrorCode; message: string; hint: string | undefined } };

/** Tasks that wait in a worker, so that it never idles while the main thread writes. */
const QUEUE_PER_WORKER = 2;

interface Waiting {
  resolve: (value: never) => void;
  reject: (error: unknown) => void;
}

/** A pool of `jobs` threads; 1 (or no built worker) runs everything in this thread. */
export class Jobs {
  private readonly workers: Worker[] = [];
  private readonly waiting = new Map<number, Waiting>();
  private readonly cache = new RunCache(CACHE_BYTES_MAX);
  private next = 0;

  constructor(jobs: number) {
    const code = jobs <= 1 ? null : workerCode();
    if (code === null) return;
    for (let i = 0; i < jobs; i += 1) this.workers.push(this.start(code, jobs));
  }

  private start({ code, eval: isText }: { code: string; eval: boolean }, jobs: number): Worker {
    // Flags of the main thread (an --input-type, a loader) are not meant for the built worker.
    const workerData = { cacheBytesMax: CACHE_BYTES_MAX / jobs };
    const worker = new Worker(code, { eval: isText, execArgv: [], workerData });
    worker.on("message", (answer: Answer) => this.settle(answer));
    worker.on("error", (error) =>
      this.failAll(new TitoError("internal", `a worker thread ended: ${error.message}`, { cause: error })),
    );
    return worker;
  }

  private settle(answer: Answer): void {
    const waiting = this.waiting.get(answer.id);
    this.waiting.delete(answer.id);
    if ("result" in answer) waiting?.resolve(answer.result as never);
    else {
      const { code, message, hint } = answer.failure;
      waiting?.reject(new TitoError(code, message, hint === undefined ? {} : { hint }));
    }
  }

  private failAll(error: unknown): void {
    for (const waiting of this.waiting.values()) waiting.reject(error);
    this.waiting.clear();
  }

  private post(task: Task): Promise<never> {
    const id = this.next;
    this.next += 1;
    const promise = new Promise<never>((resolve, reject) => this.waiting.set(id, { resolve, reject }));
    // Read in order later; a failure in between must not count as unhandled.
    promise.catch(() => undefined);
    this.workers[task.slot % this.workers.length]!.postMessage({ id, task });
    return promise;
  }

  /** Results in the order of `tasks`; at most a few tasks a worker are in flight, so memory stays flat. */
  async *run<K extends Task["kind"]>(tasks: Iterable<Extract<Task, { kind: K }>>): AsyncGenerator<TaskResults[K]> {
    if (this.workers.length === 0) {
      for (const task of tasks) yield runTask<K>(task, this.cache);
      return;
    }
    const inFlight: Promise<TaskResults[K]>[] = [];
    for (const task of tasks) {
      inFlight.push(this.post(task));
      if (inFlight.length >= this.workers.length * QUEUE_PER_WORKER) yield await inFlight.shift()!;
    }
    while (inFlight.length > 0) yield await inFlight.shift()!;
  }

  async close(): Promise<void> {
    await Promise.all(this.workers.map((worker) => worker.terminate()));
    this.failAll(new TitoError("internal", "the workers were stopped"));
  }
}
