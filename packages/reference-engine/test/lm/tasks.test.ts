import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { loadModel, rngFrom } from "../../src/lm/index.js";
import {
  demoTasks,
  isHeldOut,
  makeTask,
  TASK_KINDS,
  type TaskKind,
  WORK_DIRECTORY_PATTERN,
  workDirectory,
} from "../../src/lm/tasks.js";
import { conversationRenderer, drawConversation, tokenizeEpisode } from "../../src/lm/training/episode.js";
import { rollOut } from "../../src/lm/training/rollout.js";
import { POLICY_DIRECTORY } from "./policy.js";

const model = await loadModel(POLICY_DIRECTORY);
const render = conversationRenderer(readFileSync(join(POLICY_DIRECTORY, "chat_template.jinja"), "utf8"));

describe("demo tasks", () => {
  it("are held out: no order of their operands is ever drawn for training", () => {
    const rng = rngFrom("held out test");
    for (const kind of TASK_KINDS) {
      const seen = new Set(Array.from({ length: 3000 }, () => makeTask(kind, rng, "train").operands.toSorted().join()));
      for (const task of demoTasks(kind, 64)) {
        expect(isHeldOut(kind, task.operands.toReversed())).toBe(true);
        expect(seen.has(task.operands.toSorted().join())).toBe(false);
      }
    }
  });

  it("end with a clear error when more are wanted than there are", () => {
    expect(() => demoTasks("total", 5000)).toThrow(/total has only 208 held-out tasks/);
  });

  it("repeat for a seed and differ between seeds", () => {
    expect(demoTasks("sum", 8, 1)).toEqual(demoTasks("sum", 8, 1));
    expect(demoTasks("sum", 8, 1)).not.toEqual(demoTasks("sum", 8, 2));
  });

  it("expect the right answer", () => {
    const answer = (kind: (typeof TASK_KINDS)[number], operands: readonly number[]) => {
      return kind === "larger" ? Math.max(...operands) : operands[0]! + operands[1]!;
    };
    for (const kind of TASK_KINDS) {
      for (const { operands, expected, prompt } of demoTasks(kind, 20)) {
        expect(expected.text).toBe(String(answer(kind, operands)));
        for (const operand of operands) expect(prompt).toContain(String(operand));
      }
    }
  });

  it("run in directories of one shape", () => {
    for (const [demo, rollout] of [
      [0, 0],
      [123456, 7],
      [7_654_321, 123],
    ] as const) {
      expect(workDirectory(demo, rollout)).toMatch(WORK_DIRECTORY_PATTERN);
    }
  });
});

describe("training episodes", () => {
  it("re-render so that each later prompt starts with the ids of prompt and answer before it", () => {
    const rng = rngFrom("prefixes");
    for (let i = 0; i < 40; i++) {
      const messages = drawConversation(rng, true);
      const episode = tokenizeEpisode(render(messages, false), model.tokenizer);
      messages.forEach(({ role }, turn) => {
        if (role !== "assistant") return;
        const prompt = model.tokenizer.encode(render(messages.slice(0, turn), true), { special: true });
        expect(episode.ids.slice(0, prompt.length)).toEqual(prompt);
        expect(episode.sampled[prompt.length - 1]).toBe(0);
        expect(episode.sampled[prompt.length]).toBe(1);
      });
    }
  });
});

describe("the trained policy", () => {
  const solvedOf64 = (kind: TaskKind, temperature: number) => {
    const rng = rngFrom("band", kind);
    return demoTasks(kind, 64, "band").filter((task) => rollOut(model, render, task, { temperature, rng }).solved)
      .length;
  };

  it.each(["total", "larger"] as const)(
    "solves a quarter to nine tenths of 64 held-out tasks of kind %s at temperature 1",
    (kind) => {
      const solved = solvedOf64(kind, 1);
      expect(solved).toBeGreaterThanOrEqual(16);
      expect(solved).toBeLessThanOrEqual(57);
    },
  );

  it("nearly always solves the easy kind, and loses it when the temperature is far too high", () => {
    expect(solvedOf64("sum", 1)).toBeGreaterThanOrEqual(60);
    expect(solvedOf64("sum", 3)).toBeLessThan(16);
  });

  it("works in several model calls, each prompt behind the one before", () => {
    const [task] = demoTasks("sum", 1);
    const { modelCalls, promptTokens } = rollOut(model, render, task!, { temperature: 0, rng: rngFrom("calls") });
    expect(modelCalls).toBeGreaterThanOrEqual(2);
    expect(promptTokens).toEqual(promptTokens.toSorted((a, b) => a - b));
    expect(Math.max(...promptTokens)).toBeLessThanOrEqual(170);
  });
});
