/** One iteration's rollouts: every task several times, by real harnesses, each through a trajectory of its own. */
import { workDirectory } from "@tito/reference-engine";
import { drawTasks } from "../habits/task.js";
import { playPi } from "../harness/pi.js";
import { type Harness, isSolved } from "../harness/rollout.js";
import { playToolLoop } from "../harness/tool-loop.js";
import type { RolloutRecord } from "../samples/rollout-record.js";
import type { HarnessName, LoopOptions } from "./options.js";
import type { Services } from "./services.js";

/** Rollouts at a time. */
const PARALLEL = 8;

export interface Batch {
  readonly options: LoopOptions;
  readonly iteration: number;
  /** Names this attempt's trajectories: a sealed or broken off one is never continued. */
  readonly attempt: number;
  readonly services: Services;
  readonly signal: AbortSignal;
}

/** Plays all rollouts of the iteration, seals them, and says what came of each. Rejects with the first failure, after all are settled. */
export async function playBatch(batch: Batch): Promise<RolloutRecord[]> {
  const { options, iteration } = batch;
  const tasks = drawTasks("train", options.tasks, options.seed, iteration);
  const plans = tasks.flatMap((task) => Array.from({ length: options.rolloutsPerTask }, () => task));
  const records: RolloutRecord[] = new Array(plans.length);
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let index = next++; index < plans.length; index = next++) {
      batch.signal.throwIfAborted();
      records[index] = await playOne(batch, index, plans[index]!);
    }
  };
  const settled = await Promise.allSettled(Array.from({ length: PARALLEL }, worker));
  for (const one of settled) if (one.status === "rejected") throw one.reason;
  return records;
}

async function playOne(batch: Batch, index: number, task: RolloutRecord["task"]): Promise<RolloutRecord> {
  const { options, iteration, attempt, services } = batch;
  const trajectoryId = `i${iteration}-a${attempt}-r${index}-${task.id}`;
  const files = new Map<string, string>();
  const transcript = await harnessOf(
    options.harness,
    index,
  )({
    ...services.endpoint(trajectoryId),
    prompt: task.prompt,
    directory: workDirectory(options.seed * 1000 + iteration, index),
    files,
    // Its own: clients leave listeners on the signal that they get.
    signal: AbortSignal.any([batch.signal]),
  });
  await services.seal(trajectoryId);
  return { trajectoryId, groupId: `${iteration}-${task.id}`, task, reward: isSolved(task, files) ? 1 : 0, transcript };
}

/** Both: they take turns, so that every group has rollouts of each. */
function harnessOf(name: HarnessName, index: number): Harness {
  switch (name) {
    case "pi":
      return playPi;
    case "tool-loop":
      return playToolLoop;
    case "both":
      return index % 2 === 0 ? playPi : playToolLoop;
    default:
      return name satisfies never;
  }
}
