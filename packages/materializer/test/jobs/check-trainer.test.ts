/** `--check-for`: what a trainer cannot express is refused with its rows before anything is written. */
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { type CheckedRun, checkTrainer, type TrainerFacts } from "../../src/jobs/check-trainer.js";
import { materialize } from "../../src/jobs/materialize.js";
import { loadPolicy } from "../../src/recipe/policy.js";
import { TRAINER_RULES, TRAINERS, type Trainer, type TrainerRule } from "../../src/recipe/trainers.js";
import { temporaryDirectory } from "../temporary.js";

const repository = resolve(import.meta.dirname, "../../../..");
const job = join(repository, "fixtures/trajectories/job-1");

const facts = (changes: Partial<TrainerFacts> = {}): TrainerFacts => ({
  temperatures: [1],
  filtered: false,
  versioned: true,
  ...changes,
});
const run = (name: string, changes: Partial<CheckedRun> = {}): CheckedRun => ({
  run_id: name,
  group_id: "g",
  per_action: false,
  has_advantage: true,
  samples: [{ index: 0, facts: facts() }],
  ...changes,
});
const withFacts = (name: string, changes: Partial<TrainerFacts>) =>
  run(name, { samples: [{ index: 0, facts: facts(changes) }] });

const BROKEN: Record<TrainerRule, CheckedRun[]> = {
  one_temperature: [run("a"), withFacts("b", { temperatures: [0.6] })],
  known_temperature: [withFacts("a", { temperatures: [null] })],
  no_filters: [withFacts("a", { filtered: true })],
  scalar_advantage: [run("a", { per_action: true })],
  one_sample_per_run: [
    run("a", {
      samples: [
        { index: 0, facts: facts() },
        { index: 1, facts: facts() },
      ],
    }),
  ],
  full_groups: [run("a"), run("b"), run("c", { group_id: "h" })],
  numeric_version: [withFacts("a", { versioned: false })],
  has_advantage: [run("a", { has_advantage: false })],
};

describe("the rules of trainers", () => {
  it("are those of the Python package, word for word", () => {
    const file = join(repository, "integrations/python/src/tito_rl/trainers.json");
    const python = JSON.parse(readFileSync(file, "utf8")) as {
      rules: unknown;
      trainers: Record<string, { rules: string[] }>;
    };
    expect(python.rules).toEqual(TRAINER_RULES);
    expect(Object.fromEntries(Object.entries(python.trainers).map(([name, { rules }]) => [name, rules]))).toEqual(
      TRAINERS,
    );
  });

  it.each(Object.keys(TRAINERS) as Trainer[])("%s refuses what its rules name and nothing else", (trainer) => {
    for (const [rule, runs] of Object.entries(BROKEN)) {
      if (!(TRAINERS[trainer] as readonly string[]).includes(rule)) {
        checkTrainer(trainer, runs);
        continue;
      }
      expect(() => checkTrainer(trainer, runs), rule).toThrow(TRAINER_RULES[rule as TrainerRule].helps);
      expect(() => checkTrainer(trainer, runs), rule).toThrow(/run a|group h/);
    }
  });

  it("names three rows and counts the others, and says when nothing trains", () => {
    const many = Array.from({ length: 10 }, (_, i) => run(`r${i}`, { has_advantage: false }));
    expect(() => checkTrainer("verl", many)).toThrow(/run r0, run r1, run r2 and 7 more/);
    expect(() => checkTrainer("verl", [])).toThrow(/no run can train/);
  });
});

describe("tito materialize --check-for", () => {
  const root = temporaryDirectory();

  it("refuses several samples of a rollout for TRL before it writes anything, and lets verl take them", async () => {
    const out = join(root, "rows.jsonl");
    await expect(materialize({ paths: [job], out, checkFor: "trl" })).rejects.toMatchObject({
      code: "cannot_express",
      message: expect.stringMatching(/a rollout has several samples.*run job-1\/add__kT9x has 2/),
    });
    expect(existsSync(out)).toBe(false);
    await materialize({ paths: [job], out, checkFor: "skyrl" });
    expect(existsSync(out)).toBe(true);
  });

  it("is a mistake beside packing, whose rows hold several samples", async () => {
    const policy = loadPolicy("pack: {max_tokens: 64}");
    await expect(
      materialize({ paths: [job], out: join(root, "packed.jsonl"), policy, checkFor: "verl" }),
    ).rejects.toMatchObject({ code: "usage" });
  });
});
