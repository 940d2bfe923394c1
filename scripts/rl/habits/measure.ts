/** How often each habit shows on held-out tasks, and how often it is right. */
import type { Model } from "../../../packages/reference-engine/src/lm/index.js";
import { rngFrom } from "../../../packages/reference-engine/src/lm/random.js";
import type { ChatMessage } from "../../../packages/reference-engine/src/lm/training/episode.js";
import { rollOut } from "../../../packages/reference-engine/src/lm/training/rollout.js";
import { HABITS, type Habit, habitOf } from "./habit.js";
import { drawTasks } from "./task.js";

export type HabitScores = Readonly<Record<Habit, { rollouts: number; solved: number }>>;

/** One rollout at temperature 1 for each of `rollouts` held-out tasks, in this process, with copies of the demo's tools. */
export function measureHabits(
  model: Model,
  render: (messages: readonly ChatMessage[], addGenerationPrompt: boolean) => string,
  { rollouts, seed }: { rollouts: number; seed: string | number },
): HabitScores {
  const scores = {
    calc: { rollouts: 0, solved: 0 },
    think: { rollouts: 0, solved: 0 },
    guess: { rollouts: 0, solved: 0 },
  };
  const rng = rngFrom("measure habits", seed);
  for (const task of drawTasks("held out", rollouts, seed)) {
    const { messages, solved } = rollOut(model, render, task, { temperature: 1, rng });
    const first = messages.find(({ role }) => role === "assistant");
    const toolNames = (first?.tool_calls ?? []).map((call) => call.function.name);
    const score = scores[habitOf({ reasoning: first?.reasoning_content ?? null, toolNames })];
    score.rollouts += 1;
    if (solved) score.solved += 1;
  }
  return scores;
}

/** A line a habit. */
export function formatHabits(scores: HabitScores): string {
  const total = HABITS.reduce((sum, habit) => sum + scores[habit].rollouts, 0);
  const percent = (part: number, whole: number) => `${whole === 0 ? 0 : Math.round((100 * part) / whole)} %`;
  return HABITS.map((habit) => {
    const { rollouts, solved } = scores[habit];
    return `${habit.padEnd(6)} ${percent(rollouts, total).padStart(5)} of rollouts, right ${percent(solved, rollouts).padStart(5)} (${solved} of ${rollouts})`;
  }).join("\n");
}
