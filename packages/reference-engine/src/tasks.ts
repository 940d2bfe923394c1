import { type Rng, rngFrom } from "./lm/random.js";

/** Kinds of small task that the policy is trained on, by what makes them hard for it. */
export type TaskKind = "difference" | "sum" | "largest" | "total";

/** difference: order two numbers, then use the calculator · sum: add in the head · largest: compare three numbers · total: add aloud, digit by digit. */
export const TASK_KINDS: readonly TaskKind[] = ["difference", "sum", "largest", "total"];

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

/** The first `count` held-out tasks of a kind: operands that no training episode has, whatever their order. Same seed, same tasks. */
export function demoTasks(kind: TaskKind, count: number, seed: string | number = 0): DemoTask[] {
  const rng = rngFrom("demo tasks", seed, kind);
  const tasks = new Map<string, DemoTask>();
  while (tasks.size < count) {
    const task = makeTask(kind, rng, "held out");
    tasks.set(task.id, task);
  }
  return [...tasks.values()];
}

/** Draws a task of the kind from one side of the split. */
export function makeTask(kind: TaskKind, rng: Rng, split: "train" | "held out"): DemoTask {
  for (;;) {
    const operands = drawOperands(kind, rng);
    if (isHeldOut(kind, operands) === (split === "held out")) return describeTask(kind, operands);
  }
}

/** One operand set in eight is held out, by a hash of the kind and the sorted operands. */
export function isHeldOut(kind: TaskKind, operands: readonly number[]): boolean {
  return rngFrom("held out", kind, ...[...operands].sort((a, b) => a - b))() < 1 / 8;
}

const between = (rng: Rng, low: number, high: number): number => low + Math.floor(rng() * (high - low + 1));

function drawOperands(kind: TaskKind, rng: Rng): number[] {
  switch (kind) {
    case "difference":
    case "sum":
      return [between(rng, 10, 99), between(rng, 10, 99)];
    case "largest":
      return [between(rng, 10, 99), between(rng, 10, 99), between(rng, 10, 99)];
    case "total":
      return [between(rng, 100, 999), between(rng, 100, 999)];
    default:
      return kind satisfies never;
  }
}

function describeTask(kind: TaskKind, operands: readonly number[]): DemoTask {
  const [a, b, c] = operands as [number, number, number];
  const task = (prompt: string, answer: number): DemoTask => ({
    id: `${kind}-${operands.join("-")}`,
    kind,
    operands,
    prompt,
    expected: { file: ANSWER_FILE, text: String(answer) },
  });
  switch (kind) {
    case "difference":
      return task(`Use calc to find how far apart ${a} and ${b} are. Save it in answer.txt.`, Math.abs(a - b));
    case "sum":
      return task(`Add ${a} and ${b} in your head. Save it in answer.txt.`, a + b);
    case "largest":
      return task(`Which is the largest: ${a}, ${b} or ${c}? Save it in answer.txt.`, Math.max(a, b, c));
    case "total":
      return task(`Add ${a} and ${b} aloud. Save it in answer.txt.`, a + b);
    default:
      return kind satisfies never;
  }
}
