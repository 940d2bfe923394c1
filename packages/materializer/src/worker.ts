/** The body of a worker thread: a task in, a result or an error out. */
import { parentPort, workerData } from "node:worker_threads";
import { fromSystem, TitoError } from "@tito/format";
import type { Answer } from "./jobs/jobs.js";
import { RunCache } from "./jobs/run-cache.js";
import { runTask, type Task, transferable } from "./jobs/tasks.js";

const cache = new RunCache((workerData as { cacheBytesMax: number }).cacheBytesMax);

parentPort?.on("message", ({ id, task }: { id: number; task: Task }) => {
  try {
    const result = runTask(task, cache);
    parentPort?.postMessage({ id, result } satisfies Answer, transferable(result));
  } catch (thrown) {
    const error = fromSystem(thrown);
    const failure = TitoError.is(error)
      ? { code: error.code, message: error.message, hint: error.hint }
      : {
          code: "internal" as const,
          message: error instanceof Error ? (error.stack ?? error.message) : String(error),
          hint: undefined,
        };
    parentPort?.postMessage({ id, failure } satisfies Answer);
  }
});
