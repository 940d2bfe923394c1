/** The trainer of the RL loop, on the embedded engine's own backward pass: one optimizer step a batch, bit-equal on the same inputs. */
import { rngFrom } from "../../../packages/reference-engine/src/lm/random.js";
import { Optimizer } from "../../../packages/reference-engine/src/lm/training/optimizer.js";
import { POLICY_CONFIG } from "../../../packages/reference-engine/src/lm/training/recipe.js";
import { type TargetToken, Trainer } from "../../../packages/reference-engine/src/lm/training/trainer.js";
import { clippedLoss } from "./clipped-loss.js";
import type { TrainingSample } from "./training-sample.js";

export interface GrpoSettings {
  /** Constant. */
  readonly learningRate: number;
  readonly clip: number;
  /** Longest gradient, Euclidean. */
  readonly clipNorm: number;
  /** Samples of one forward and backward pass; gradients of several passes add up to one step. */
  readonly microBatch: number;
  /** Decides the order in which samples are added up. */
  readonly seed: number;
}

export const GRPO_DEFAULTS: GrpoSettings = { learningRate: 1e-3, clip: 0.2, clipNorm: 1, microBatch: 4, seed: 1 };

/** Longest sample, in tokens. Six calls of 64 tokens fit, with what is between them. */
export const SAMPLE_TOKENS_MAX = 640;

/** What one step did. */
export interface StepReport {
  /** Null: nothing to train on, and the parameters are unchanged. */
  readonly loss: number | null;
  readonly tokens: number;
  /** Mean log π of the trained tokens before the step. */
  readonly meanLogprob: number | null;
  /** Largest |ratio − 1| between this trainer's log probabilities and the old ones that it was given. */
  readonly ratioOffMax: number;
  readonly clippedTokens: number;
  readonly gradientNorm: number;
}

/** log π of each trained token before the step, by sample and position. */
export type SeenLogprob = (sample: number, index: number, logprob: number) => void;

export class GrpoTrainer {
  readonly trainer = new Trainer(POLICY_CONFIG, { episodes: 4, tokensMax: SAMPLE_TOKENS_MAX });
  readonly optimizer: Optimizer;
  readonly #settings: GrpoSettings;

  constructor(settings: GrpoSettings) {
    if (settings.microBatch > 4) throw new RangeError(`${settings.microBatch} samples a pass, room for 4`);
    this.#settings = settings;
    // Constant rate: warm from the first step, and no decay.
    this.optimizer = new Optimizer(this.trainer.parameters, {
      learningRate: settings.learningRate,
      warmupSteps: 1,
      decayFrom: 1,
      finalFraction: 1,
      beta1: 0.9,
      beta2: 0.999,
      epsilon: 1e-8,
      clipNorm: settings.clipNorm,
    });
  }

  /** One Adam step on all samples. Without a trained token it does nothing. */
  step(samples: readonly TrainingSample[], seen: SeenLogprob = () => {}): StepReport {
    const tally = { logprobs: 0, tokens: 0, ratioOffMax: 0, clippedTokens: 0 };
    let loss = 0;
    this.trainer.parameters.gradients.fill(0);
    for (const batch of this.#microBatches(samples)) {
      const episodes = batch.map((index) => ({ ids: samples[index]!.tokens, sampled: samples[index]!.mask }));
      loss += this.trainer.addLossAndGradients(episodes, (token) => {
        const sample = batch[token.episode]!;
        seen(sample, token.index, token.logprob);
        return this.#tokenLoss(samples[sample]!, token, tally);
      });
    }
    const { tokens, ratioOffMax, clippedTokens } = tally;
    if (tokens === 0) return { loss: null, meanLogprob: null, gradientNorm: 0, tokens, ratioOffMax, clippedTokens };
    const { gradientNorm } = this.optimizer.update(0);
    return { loss, tokens, meanLogprob: tally.logprobs / tokens, ratioOffMax, clippedTokens, gradientNorm };
  }

  #tokenLoss(
    { weights, advantages, oldLogprobs }: TrainingSample,
    { index, logprob }: TargetToken,
    tally: { logprobs: number; tokens: number; ratioOffMax: number; clippedTokens: number },
  ): { loss: number; slope: number } {
    const { loss, slope, ratio, clipped } = clippedLoss({
      logprob,
      oldLogprob: oldLogprobs === null ? logprob : oldLogprobs[index]!,
      advantage: advantages[index]!,
      weight: weights[index]!,
      clip: this.#settings.clip,
    });
    tally.logprobs += logprob;
    tally.tokens += 1;
    tally.ratioOffMax = Math.max(tally.ratioOffMax, Math.abs(ratio - 1));
    if (clipped) tally.clippedTokens += 1;
    return { loss, slope };
  }

  /** Indices of the samples that train, shuffled by seed and step, a micro-batch each. */
  *#microBatches(samples: readonly TrainingSample[]): Generator<number[]> {
    const { seed, microBatch } = this.#settings;
    const order = samples.flatMap(({ mask }, index) => (mask.includes(1) ? [index] : []));
    const rng = rngFrom("order of samples", seed, this.optimizer.state.step);
    for (let last = order.length - 1; last > 0; last--) {
      const other = Math.floor(rng() * (last + 1));
      [order[last], order[other]] = [order[other]!, order[last]!];
    }
    for (let from = 0; from < order.length; from += microBatch) yield order.slice(from, from + microBatch);
  }
}
