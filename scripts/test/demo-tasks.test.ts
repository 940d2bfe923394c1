import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, it } from "vitest";
import { loadModel } from "../../packages/reference-engine/src/lm/model.js";
import { rngFrom } from "../../packages/reference-engine/src/lm/random.js";
import { conversationRenderer } from "../../packages/reference-engine/src/lm/training/episode.js";
import { rollOut } from "../../packages/reference-engine/src/lm/training/rollout.js";
import { GRADED_TASKS } from "../demo/tasks.js";

const ROLLOUTS = 64;
const policyDir = resolve(import.meta.dirname, "../../fixtures/policy");

it("every graded task of the demo is solved by 25 to 90 % of 64 rollouts at temperature 1", async () => {
  const model = await loadModel(policyDir);
  const render = conversationRenderer(readFileSync(join(policyDir, "chat_template.jinja"), "utf8"));
  const solved = GRADED_TASKS.map((task) => {
    const rollouts = Array.from({ length: ROLLOUTS }, (_, index) =>
      rollOut(model, render, task, { temperature: 1, rng: rngFrom("demo task", task.id, index) }),
    );
    return { task: task.id, share: rollouts.filter((rollout) => rollout.solved).length / ROLLOUTS };
  });
  console.log(solved.map(({ task, share }) => `${task}: ${(100 * share).toFixed(0)} %`).join(" · "));
  for (const { task, share } of solved) {
    expect(share, task).toBeGreaterThanOrEqual(0.25);
    expect(share, task).toBeLessThanOrEqual(0.9);
  }
});
