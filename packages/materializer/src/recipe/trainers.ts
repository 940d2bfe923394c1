/**
 * What each trainer cannot express. `integrations/python/src/tito_rl/trainers.json` says the same for the Python package, in the
 * same words; a test keeps the two equal.
 */

export const TRAINER_RULES = {
  one_temperature: {
    says: "trained turns were sampled at several temperatures, and the trainer divides all logits by one",
    helps:
      "sample all trials at one temperature (--sampling temperature=T), or use prime-rl, which takes one for each token",
  },
  known_temperature: {
    says: "the temperature of a trained turn is not on record, and the trainer divides logits by it",
    helps: "record with --sampling neutral or --sampling temperature=T",
  },
  no_filters: {
    says: "trained turns were sampled with filters or penalties, and their log probabilities are of the distribution that those leave, which the trainer does not compute",
    helps: "sample without filters (--sampling neutral)",
  },
  scalar_advantage: {
    says: "advantages are lists with one number for each action, and the trainer takes one for a sample",
    helps: "materialize without --turn-rewards, or use verl, SkyRL, prime-rl, Tinker or Fireworks",
  },
  one_sample_per_run: {
    says: "a rollout has several samples, and the trainer takes one for each entry of a prompt",
    helps: "record with --tito-prompt-mode incremental so that a rollout stays one sample, or use trl-async",
  },
  full_groups: {
    says: "groups differ in how many of their rollouts can train, and the trainer takes groups of one size",
    helps:
      "give the group size, so that missing members are filled with rows that cannot train, or leave those groups out",
  },
  numeric_version: {
    says: "the weight version of a trained token has no number, and the trainer drops samples by their age",
    helps: "record with --weight-version N, or let the engine report a version that ends in a number",
  },
  has_advantage: {
    says: "samples have no advantage",
    helps: "materialize with --credit grpo (or another rule) and rewards",
  },
} as const;
export type TrainerRule = keyof typeof TRAINER_RULES;

const EVERY: readonly TrainerRule[] = ["one_temperature", "known_temperature", "no_filters", "has_advantage"];

/** Rules by trainer, as `--check-for` names it. */
export const TRAINERS = {
  trl: ["one_temperature", "known_temperature", "no_filters", "scalar_advantage", "one_sample_per_run", "full_groups"],
  "trl-async": [
    "one_temperature",
    "known_temperature",
    "no_filters",
    "scalar_advantage",
    "numeric_version",
    "has_advantage",
  ],
  verl: EVERY,
  skyrl: EVERY,
  slime: ["one_temperature", "known_temperature", "no_filters", "scalar_advantage", "has_advantage"],
  "prime-rl": ["known_temperature", "no_filters", "has_advantage"],
  tinker: EVERY,
  fireworks: EVERY,
  sft: [],
} as const satisfies Record<string, readonly TrainerRule[]>;
export type Trainer = keyof typeof TRAINERS;
