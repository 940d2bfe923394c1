import { type Rng, rngFrom } from "./random.js";

/** Kinds of small task that the policy is trained on. */
export type TaskKind = "sum" | "total" | "larger";

/** sum: copy two numbers into the calculator, save what it says · total: add them column by column, thinking aloud · larger: compare them, thinking aloud. */
export const TASK_KINDS: readonly TaskKind[] = ["sum", "total", "larger"];

/** One task with what its verifier expects. */
export interface DemoTask {
  /** Kind and operands; equal ids are equal tasks. */
  readonly id: string;
  readonly kind: TaskKind;
  readonly operands: readonly number[];
  /** The user's message. */
  readonly prompt: string;
  /** The task is solved when this file of the working directory holds exactly this text (outer blanks aside). */
  readonly expected: { readonly file: string; readonly text: string };
}

/** System prompt that the policy knows. The harness adds the date and the working directory. */
export const SYSTEM_PROMPT = "Solve with tools.";

/** The file that every task asks for. */
export const ANSWER_FILE = "answer.txt";

/** Working directories that the policy knows: six digits for a demo, two for a rollout; one token a digit, so that all have the same length. */
export const WORK_DIRECTORY_PATTERN = /^\/tmp\/tito-\d{6}\/\d{2}$/;

/** The working directory of a rollout, in the shape of {@link WORK_DIRECTORY_PATTERN}. */
export function workDirectory(demo: number, rollout: number): string {
  return `/tmp/tito-${String(demo % 1e6).padStart(6, "0")}/${String(rollout % 100).padStart(2, "0")}`;
}

/** The tools of fixtures/demo/pi-tools.mjs, as a chat request carries them. */
export const DEMO_TOOLS = [
  tool("calc", "Evaluates one sum or difference of two whole numbers.", ["expression"]),
  tool("save", "Writes a small text file into the working directory.", ["name", "text"]),
] as const;

function tool(name: string, description: string, parameters: readonly string[]) {
  const properties = Object.fromEntries(parameters.map((parameter) => [parameter, { type: "string" }]));
  return {
    type: "function",
    function: { name, description, parameters: { type: "object", properties, required: parameters } },
  };
}

/** Held-out draws in a row without a new task, after which a kind counts as used up. */
const DRAWS_WITHOUT_NEW_MAX = 20_000;

/**
 * The first `count` held-out tasks of a kind: operands that no training episode has, whatever their order. Same seed, same tasks.
 * Throws RangeError when the kind has fewer (total has 208, the others a thousand).
 */
export function demoTasks(kind: TaskKind, count: number, seed: string | number = 0): DemoTask[] {
  const rng = rngFrom("demo tasks", seed, kind);
  const tasks = new Map<string, DemoTask>();
  for (let unchanged = 0; tasks.size < count; ) {
    const task = makeTask(kind, rng, "held out");
    unchanged = tasks.has(task.id) ? unchanged + 1 : 0;
    if (unchanged > DRAWS_WITHOUT_NEW_MAX)
      throw new RangeError(`${kind} has only ${tasks.size} held-out tasks, ${count} were asked for`);
    tasks.set(task.id, task);
  }
  return [...tasks.values()];
}

/** Draws a task of the kind from one side of the split. */
export function makeTask(kind: TaskKind, rng: Rng, split: "train" | "held out"): DemoTask {
  for (;;) {
    const most = kind === "total" ? 49 : 99;
    const operands = [between(rng, 10, most), between(rng, 10, most)];
    if (isHeldOut(kind, operands) === (split === "held out")) return describeTask(kind, operands);
  }
}

/** One operand set in eight is held out, by a hash of the kind and the sorted operands. */
export function isHeldOut(kind: TaskKind, operands: readonly number[]): boolean {
  return rngFrom("held out", kind, ...[...operands].sort((a, b) => a - b))() < 1 / 8;
}

const between = (rng: Rng, low: number, high: number): number => low + Math.floor(rng() * (high - low + 1));

/** The operands come last, so that they lie equally far from the answer in every kind: a two-layer model finds them by distance. */
function describeTask(kind: TaskKind, operands: readonly number[]): DemoTask {
  const [a, b] = operands as [number, number];
  const task = (wish: string, answer: number): DemoTask => ({
    id: `${kind}-${operands.join("-")}`,
    kind,
    operands,
    prompt: `${wish} in ${ANSWER_FILE}: ${operands.join(" ")}`,
    expected: { file: ANSWER_FILE, text: String(answer) },
  });
  switch (kind) {
    case "sum":
      return task("Use calc and save the sum", a + b);
    case "total":
      return task("Think and save the sum", a + b);
    case "larger":
      return task("Think and save the larger", Math.max(a, b));
    default:
      return kind satisfies never;
  }
}
