/**
 * The small language model behind the engine: tokenizer, forward pass with a key/value cache, log probabilities and sampling, all deterministic.
 * It renders no template, parses no answer and speaks no HTTP.
 */
export { logSoftmax, logSoftmaxAt } from "./log-softmax.js";
export { loadModel, type Model } from "./model.js";
export { type Rng, rngFrom } from "./random.js";
export {
  NEUTRAL_SAMPLING,
  type SamplingSettings,
  sampleToken,
} from "./sampling.js";
export type { AddedToken, Tokenizer } from "./tokenizer.js";
