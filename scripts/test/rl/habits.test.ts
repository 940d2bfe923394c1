import { readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, it } from "vitest";
import { startTuning } from "../../rl/habits/tune.js";

const fixtures = resolve(import.meta.dirname, "../../../fixtures");
const read = (policy: string, name: string) => readFileSync(join(fixtures, policy, name), "utf8");
const LOGGED_STEPS = 50;

it("retraining the first 50 steps of the start policy gives each loss bit by bit", () => {
  const { steps } = JSON.parse(read("habits", "training-log.json")) as { steps: { step: number; loss: number }[] };
  const losses = [];
  for (const { step, loss } of startTuning(join(fixtures, "policy")).steps()) {
    losses.push(loss);
    if (step === LOGGED_STEPS) break;
  }
  expect(losses).toEqual(steps.slice(0, LOGGED_STEPS).map(({ loss }) => loss));
});

it("the start policy has the embedded policy's vocabulary and template, and weights of less than 500 kB", () => {
  for (const name of ["tokenizer.json", "chat_template.jinja", "config.json"])
    expect(read("habits", name)).toBe(read("policy", name));
  expect(statSync(join(fixtures, "habits/model.safetensors")).size).toBeLessThan(500_000);
});
