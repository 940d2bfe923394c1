import { exp, log } from "./exact-math.js";

/** log Σ exp(logits / T), in f64, summed in index order. −Infinity entries (filtered tokens) add nothing. */
function logSumExp(logits: Float32Array | Float64Array, temperature: number): number {
  let highest = Number.NEGATIVE_INFINITY;
  for (const logit of logits) if (logit > highest) highest = logit;
  let sum = 0;
  for (const logit of logits) sum += exp((logit - highest) / temperature);
  return highest / temperature + log(sum);
}

/** log π(id) under softmax(logits / T), rounded to float32. This one function serves sampling and scoring, so the two agree bit by bit. */
export function logSoftmaxAt(logits: Float32Array | Float64Array, id: number, temperature = 1): number {
  return Math.fround(logits[id]! / temperature - logSumExp(logits, temperature));
}

/** All of log softmax(logits / T); entry i equals `logSoftmaxAt(logits, i, T)`. For top-logprob lists. */
export function logSoftmax(logits: Float32Array, temperature = 1): Float32Array {
  const total = logSumExp(logits, temperature);
  return logits.map((logit) => logit / temperature - total);
}
