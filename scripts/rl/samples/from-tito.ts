/** Arm 1: the rows of `tito materialize`, as they are. */
import type { RolloutRun } from "@tito/materializer";
import { type TrainingSample, tokenWeights } from "../trainer/training-sample.js";

/** One training sample for each row that has a weight and an advantage; ids, mask and log probabilities are the recorded ones. */
export function samplesFromTito(runs: readonly RolloutRun[]): TrainingSample[] {
  const weightOfBatch = runs.reduce((sum, run) => sum + run.weight, 0);
  return runs.flatMap((run) =>
    run.samples.flatMap((sample): TrainingSample[] => {
      const { advantage, weight } = sample;
      if (typeof advantage !== "number" || weight === 0) return [];
      const mask = Uint8Array.from(sample.loss_mask);
      return [
        {
          tokens: Int32Array.from(sample.tokens),
          mask,
          weights: tokenWeights(mask, weight, weightOfBatch),
          advantages: new Float64Array(mask.length).fill(advantage),
          oldLogprobs: Float64Array.from(sample.logprobs),
        },
      ];
    }),
  );
}
