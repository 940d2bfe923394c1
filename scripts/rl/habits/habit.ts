/** The three ways in which the start policy solves the task, and how to tell them apart in a conversation. */
import { addAloud, type ChatMessage, callTool } from "../../../packages/reference-engine/src/lm/training/episode.js";
import type { SumTask } from "./task.js";

/** calc: asks the calculator · think: adds column by column in `<think>` · guess: saves a number at once. */
export const HABITS = ["calc", "think", "guess"] as const;
export type Habit = (typeof HABITS)[number];

/** The turns of a perfect solution by this habit. */
export function solveBy(habit: Habit, task: SumTask): ChatMessage[] {
  const answer = task.expected.text;
  const [a, b] = task.operands;
  const save = callTool("save", { name: task.expected.file, text: answer });
  const end: ChatMessage[] = [
    { role: "tool", content: "saved" },
    { role: "assistant", content: `The answer is ${answer}.` },
  ];
  switch (habit) {
    case "calc":
      return [callTool("calc", { expression: `${a}+${b}` }), { role: "tool", content: answer }, save, ...end];
    case "think":
      return [{ ...save, reasoning_content: addAloud(a, b) }, ...end];
    case "guess":
      return [save, ...end];
    default:
      return habit satisfies never;
  }
}

/** Which habit a first answer shows: a call of `calc`, reasoning, or neither. */
export function habitOf(first: { reasoning: string | null; toolNames: readonly string[] }): Habit {
  if (first.toolNames[0] === "calc") return "calc";
  return first.reasoning === null ? "guess" : "think";
}
