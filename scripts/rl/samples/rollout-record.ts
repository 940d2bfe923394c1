/** A played rollout, before anything is made of it. */
import type { SumTask } from "../habits/task.js";
import type { Transcript } from "../harness/rollout.js";

export interface RolloutRecord {
  /** Names the trajectory that the gateway recorded. */
  readonly trajectoryId: string;
  readonly groupId: string;
  readonly task: SumTask;
  readonly reward: number;
  /** What the harness knows: messages, without ids. */
  readonly transcript: Transcript;
}
