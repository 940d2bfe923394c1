import type { Parameters } from "./parameters.js";

/** Adam with gradient clipping and a warm-up, plateau, linear-decay schedule over a token budget. */
export interface OptimizerSettings {
  readonly learningRate: number;
  readonly warmupSteps: number;
  /** Fraction of the token budget at which the decay starts. */
  readonly decayFrom: number;
  /** Learning rate at the end, as a fraction of the highest. */
  readonly finalFraction: number;
  readonly beta1: number;
  readonly beta2: number;
  readonly epsilon: number;
  /** Longest gradient, Euclidean. */
  readonly clipNorm: number;
}

const ADAM: OptimizerSettings = {
  learningRate: 3e-3,
  warmupSteps: 100,
  decayFrom: 0.4,
  finalFraction: 0.02,
  beta1: 0.9,
  beta2: 0.98,
  epsilon: 1e-8,
  clipNorm: 1,
};

export class Optimizer {
  readonly #parameters: Parameters;
  readonly #settings: OptimizerSettings;
  readonly #mean: Float32Array;
  readonly #square: Float32Array;
  #step = 0;
  #beta1Power = 1;
  #beta2Power = 1;

  constructor(parameters: Parameters, settings: OptimizerSettings = ADAM) {
    this.#parameters = parameters;
    this.#settings = settings;
    this.#mean = new Float32Array(parameters.values.length);
    this.#square = new Float32Array(parameters.values.length);
  }

  /** Everything besides the parameters that the next update depends on; the arrays are the optimizer's own. */
  get state(): { readonly step: number; readonly mean: Float32Array; readonly square: Float32Array } {
    return { step: this.#step, mean: this.#mean, square: this.#square };
  }

  /** Goes on where another run stopped. */
  restore(state: { readonly step: number; readonly mean: Float32Array; readonly square: Float32Array }): void {
    this.#step = state.step;
    this.#mean.set(state.mean);
    this.#square.set(state.square);
    this.#beta1Power = 1;
    this.#beta2Power = 1;
    for (let step = 0; step < state.step; step++) {
      this.#beta1Power *= this.#settings.beta1;
      this.#beta2Power *= this.#settings.beta2;
    }
  }

  /** One update from `parameters.gradients`. `progress`: fraction of the token budget used so far. Says how long the gradient was before clipping. */
  update(progress: number): { gradientNorm: number } {
    const { beta1, beta2, epsilon, clipNorm } = this.#settings;
    const { values, gradients } = this.#parameters;
    this.#step += 1;
    this.#beta1Power *= beta1;
    this.#beta2Power *= beta2;
    const rate = this.#rate(progress);
    let squares = 0;
    for (const gradient of gradients) squares += gradient * gradient;
    const norm = Math.sqrt(squares);
    const shrink = norm > clipNorm ? clipNorm / norm : 1;
    const meanScale = 1 / (1 - this.#beta1Power);
    const squareScale = 1 / (1 - this.#beta2Power);
    for (let i = 0; i < values.length; i++) {
      const gradient = gradients[i]! * shrink;
      const mean = beta1 * this.#mean[i]! + (1 - beta1) * gradient;
      const square = beta2 * this.#square[i]! + (1 - beta2) * gradient * gradient;
      this.#mean[i] = mean;
      this.#square[i] = square;
      values[i]! -= (rate * mean * meanScale) / (Math.sqrt(square * squareScale) + epsilon);
    }
    return { gradientNorm: norm };
  }

  #rate(progress: number): number {
    const { learningRate, warmupSteps, decayFrom, finalFraction } = this.#settings;
    const warm = Math.min(1, this.#step / warmupSteps);
    const decay = progress <= decayFrom ? 1 : 1 - ((1 - finalFraction) * (progress - decayFrom)) / (1 - decayFrom);
    return learningRate * warm * decay;
  }
}
