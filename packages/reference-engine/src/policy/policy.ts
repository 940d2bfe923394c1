import type { Fault } from "../faults/schema.js";
import type { SamplingSettings } from "../lm/index.js";
import type { EncodedPrompt } from "../render/prompt.js";

/** What shapes the distribution a token is drawn from, and with which luck. */
export interface Sampling extends SamplingSettings {
  /** Null: drawn from the engine's seed, the prompt and how often it was seen. */
  readonly seed: number | null;
}

/** A token and its natural log probability, exact in float32. `rank` 1 is the most probable; null when it was not computed. */
export interface ScoredToken {
  id: number;
  logprob: number;
  rank: number | null;
}

/** One sampled token, with the `topCount` most probable alternatives. */
export interface Draw extends ScoredToken {
  top: ScoredToken[];
}

/** One choice to sample. */
export interface DrawRequest {
  prompt: EncodedPrompt;
  sampling: Sampling;
  /** Which of the n choices of this prompt. */
  choice: number;
  /** How often the engine saw exactly this prompt before, this choice included. */
  occurrence: number;
  topCount: number;
}

/** Draws the tokens of one choice, one by one. */
export interface Sampler {
  /** The next token, or null when a script has no more to say (finish reason `length`). */
  next(): Draw | null;
  /** Wait before each token, on top of the engine's own. */
  readonly delayMs: number;
  /** How a script wants this request to go wrong. */
  readonly fault: Fault | null;
}

/** What answers: a model, or a script. */
export interface Policy {
  readonly name: "lm" | "script";
  /** Throws `bad_request` when nothing answers the prompt. */
  start(request: DrawRequest): Sampler;
  /** For each position but the first: the prompt's token under the ids before it, and the `topCount` most probable. */
  scorePrompt(ids: readonly number[], temperature: number, topCount: number): Draw[];
}
