/** The tasks of the demo: operands that no training episode has, hard enough that some rollouts solve them and some do not. */
import { type DemoTask, demoTasks, type TaskKind } from "@tito/reference-engine";

/** Drawn with this seed; the ids say which draw. */
const SEED = 1;
const DRAWN_PER_KIND = 6;

/** Each is solved by 25 to 90 % of 64 rollouts at temperature 1 (`scripts/test/demo-tasks.test.ts` counts again). */
const GRADED_IDS = ["total-31-45", "total-29-48", "larger-91-64"];

export const GRADED_TASKS: readonly DemoTask[] = GRADED_IDS.map((id) => findTask(id));

/** Three calls with a tool's answer in between, and nearly always solved: for tests of the way, not of the policy. */
export const EASY_TASK: DemoTask = findTask("sum-67-46");

function findTask(id: string): DemoTask {
  const kind = id.split("-")[0] as TaskKind;
  const task = demoTasks(kind, DRAWN_PER_KIND, SEED).find((one) => one.id === id);
  if (task === undefined) throw new Error(`${id} is not among the first ${DRAWN_PER_KIND} held-out tasks of its kind`);
  return task;
}
