/** What a worker can be asked to do: one pass over one run. The same code runs in the main thread when there are no workers. */

import { assembleRun } from "../build/assemble.js";
import type { RunSource } from "../find/run-source.js";
import type { Policy } from "../recipe/policy.js";
import { encodeRun, type Format, type SinkInput } from "../write/encoded-run.js";
import type { RunHead } from "../write/rollout-run.js";
import { makeRun, type RunCredit } from "./make.js";
import type { RunCache } from "./run-cache.js";
import { newestVersionOf, type RunSurvey, surveyRun } from "./survey.js";

export type Task =
  | { kind: "newest"; slot: number; source: RunSource; policy: Policy }
  | { kind: "survey"; slot: number; source: RunSource; policy: Policy; newestVersion: number | null; root: string }
  | {
      kind: "make";
      slot: number;
      source: RunSource;
      policy: Policy;
      newestVersion: number | null;
      wide: boolean;
      head: RunHead;
      credit: RunCredit;
      /** Set: the worker encodes the run. */
      encode: Format | null;
    };

export interface TaskResults {
  newest: number | null;
  survey: RunSurvey;
  make: SinkInput;
}

/** `slot` is the number of the run: pass two of a run goes to the thread, and the cache, of its pass one. */
export function runTask<K extends Task["kind"]>(task: Extract<Task, { kind: K }>, cache: RunCache): TaskResults[K];
export function runTask(task: Task, cache: RunCache): TaskResults[Task["kind"]] {
  switch (task.kind) {
    case "newest":
      return newestVersionOf(task.source, task.policy);
    case "survey": {
      const run = assembleRun(task.source, task.policy, task.newestVersion);
      cache.offer(task.slot, run);
      return surveyRun(run, task.source, task);
    }
    case "make": {
      const run = cache.take(task.slot) ?? assembleRun(task.source, task.policy, task.newestVersion);
      const made = makeRun(run, task.head, task.credit, task);
      return task.encode === null ? made : encodeRun(made, task.encode);
    }
  }
}

/** Buffers of a result that can move to another thread without a copy. */
export function transferable(result: TaskResults[Task["kind"]]): ArrayBuffer[] {
  const buffers = new Set<ArrayBufferLike>();
  if (typeof result !== "object" || result === null) return [];
  // A small Buffer is a view into a pool that must not move; only what has its memory to itself may.
  if ("encoded" in result)
    for (const bytes of result.encoded) if (bytes.byteLength === bytes.buffer.byteLength) buffers.add(bytes.buffer);
  if ("head" in result && "samples" in result) {
    for (const sample of result.samples) {
      if (!("sample_index" in sample)) continue;
      for (const array of [sample.tokens, sample.loss_mask, sample.logprobs]) buffers.add(array.buffer);
    }
  }
  return [...buffers].filter((buffer): buffer is ArrayBuffer => buffer instanceof ArrayBuffer);
}
