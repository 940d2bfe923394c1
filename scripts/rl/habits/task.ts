/** The task of the RL loop: save a sum, by whichever way the policy likes. */

import { type Rng, rngFrom } from "../../../packages/reference-engine/src/lm/random.js";
import { ANSWER_FILE, type DemoTask, isHeldOut } from "../../../packages/reference-engine/src/lm/tasks.js";

/** A sum to save; the prompt does not say how to find it. */
export interface SumTask extends Pick<DemoTask, "id" | "operands" | "prompt" | "expected"> {
  readonly operands: readonly [number, number];
}

export type Split = "train" | "held out";

/** Two digits each. The base policy adds aloud only up to 49, so thinking is often wrong: the calculator is the better habit. */
const OPERAND_MIN = 10;
const OPERAND_MAX = 99;

/** Draws `count` different tasks of one side of the split. Same seed parts, same tasks. */
export function drawTasks(split: Split, count: number, ...seed: readonly (string | number)[]): SumTask[] {
  const rng = rngFrom("sum tasks", split, ...seed);
  const tasks = new Map<string, SumTask>();
  while (tasks.size < count) {
    const task = drawTask(split, rng);
    tasks.set(task.id, task);
  }
  return [...tasks.values()];
}

/** One task of one side of the split: one pair in eight is held out, by the hash of the `total` tasks; neither fine-tuning nor RL trains on it. */
export function drawTask(split: Split, rng: Rng): SumTask {
  for (;;) {
    const a = OPERAND_MIN + Math.floor(rng() * (OPERAND_MAX - OPERAND_MIN + 1));
    const b = OPERAND_MIN + Math.floor(rng() * (OPERAND_MAX - OPERAND_MIN + 1));
    if (isHeldOut("total", [a, b]) !== (split === "held out")) continue;
    return {
      id: `save-${a}-${b}`,
      operands: [a, b],
      prompt: `Save the sum in ${ANSWER_FILE}: ${a} ${b}`,
      expected: { file: ANSWER_FILE, text: String(a + b) },
    };
  }
}
