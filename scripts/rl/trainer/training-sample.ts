/** One token line to train on. All arrays have its length; entry i belongs to `tokens[i]`. */
export interface TrainingSample {
  readonly tokens: Int32Array;
  /** 1 where the loss counts. Never at index 0. */
  readonly mask: Uint8Array;
  /** What a token's loss is multiplied by; over a batch they sum to 1. */
  readonly weights: Float64Array;
  readonly advantages: Float64Array;
  /** log π of the policy that sampled. Null: nothing says, and the trainer's own forward pass stands in for it. */
  readonly oldLogprobs: Float64Array | null;
}

/**
 * The same weight for every trained token of a sample, so that the batch's loss is Σ weight × mean(loss over the trained tokens) ÷ Σ weight,
 * whatever a rollout was split into.
 */
export function tokenWeights(mask: Uint8Array, weight: number, weightOfBatch: number): Float64Array {
  const trained = mask.reduce((sum, bit) => sum + bit, 0);
  return Float64Array.from(mask, (bit) => (bit === 0 ? 0 : weight / (trained * weightOfBatch)));
}
