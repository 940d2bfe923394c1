import { exp } from "./exact-math.js";
import { logSoftmaxAt } from "./log-softmax.js";
import type { Rng } from "./random.js";

/** How to draw the next token; every field has a neutral value that changes nothing. */
export interface SamplingSettings {
  /** 0 takes the most likely token. Neutral: 1. */
  readonly temperature: number;
  /** Smallest set of likeliest tokens whose probability reaches this. Neutral: 1. */
  readonly topP: number;
  /** Only the k likeliest tokens. Neutral: 0 or −1. */
  readonly topK: number;
  /** Only tokens at least this fraction as likely as the likeliest. Neutral: 0. */
  readonly minP: number;
  /** > 1 discourages tokens of the prompt and the answer. Neutral: 1. */
  readonly repetitionPenalty: number;
  /** Subtracted once from the logit of each token of the answer so far. Neutral: 0. */
  readonly presencePenalty: number;
  /** Subtracted per occurrence in the answer so far. Neutral: 0. */
  readonly frequencyPenalty: number;
}

export const NEUTRAL_SAMPLING: SamplingSettings = {
  temperature: 1,
  topP: 1,
  topK: 0,
  minP: 0,
  repetitionPenalty: 1,
  presencePenalty: 0,
  frequencyPenalty: 0,
};

/** The tokens that penalties look at. */
export interface SamplingHistory {
  readonly promptIds: ArrayLike<number>;
  readonly sampledIds: ArrayLike<number>;
}

export interface SampledToken {
  readonly id: number;
  /** log softmax(logits) at temperature 1, before penalties and filters; float32-exact. */
  readonly logprob: number;
  /** log probability it was really drawn with: after penalties, temperature and filters (temperature 0: after penalties). */
  readonly processedLogprob: number;
}

/**
 * Draws one token: penalties, temperature, min-p, top-k, top-p (vLLM's order), then one number of the generator.
 * Greedy decoding draws no number. Ties are won by the lower id.
 */
export function sampleToken(
  logits: Float32Array,
  settings: SamplingSettings,
  rng: Rng,
  history?: SamplingHistory,
): SampledToken {
  const penalised = history ? penalise(logits, settings, history) : logits;
  if (settings.temperature === 0) {
    const id = argmax(penalised);
    return { id, logprob: logSoftmaxAt(logits, id), processedLogprob: logSoftmaxAt(penalised, id) };
  }
  const kept = filter(penalised, settings);
  const id = draw(kept, settings.temperature, rng());
  return { id, logprob: logSoftmaxAt(logits, id), processedLogprob: logSoftmaxAt(kept, id, settings.temperature) };
}

function penalise(logits: Float32Array, settings: SamplingSettings, history: SamplingHistory): Float32Array {
  const { repetitionPenalty, presencePenalty, frequencyPenalty } = settings;
  if (repetitionPenalty === 1 && presencePenalty === 0 && frequencyPenalty === 0) return logits;
  const out = logits.slice();
  const counts = new Map<number, number>();
  for (const id of Array.from(history.sampledIds)) counts.set(id, (counts.get(id) ?? 0) + 1);
  for (const id of new Set([...Array.from(history.promptIds), ...counts.keys()])) {
    out[id] = out[id]! > 0 ? out[id]! / repetitionPenalty : out[id]! * repetitionPenalty;
  }
  for (const [id, count] of counts) out[id] = out[id]! - frequencyPenalty * count - presencePenalty;
  return out;
}

/** The logits with −Infinity where min-p, top-k or top-p rule a token out. At least the likeliest stays. */
function filter(logits: Float32Array, settings: SamplingSettings): Float32Array {
  const { temperature, topK, topP, minP } = settings;
  const byTopK = topK > 0 && topK < logits.length;
  if (!byTopK && topP >= 1 && minP <= 0) return logits;
  const order = Array.from(logits.keys()).sort((a, b) => logits[b]! - logits[a]! || a - b);
  const highest = logits[order[0]!]!;
  const weights = order.map((id) => exp((logits[id]! - highest) / temperature));
  const limit = byTopK ? topK : logits.length;
  const inside = (rank: number) => rank < limit && weights[rank]! >= minP;
  const total = weights.reduce((sum, weight, rank) => (inside(rank) ? sum + weight : sum), 0);
  const out = new Float32Array(logits.length).fill(Number.NEGATIVE_INFINITY);
  let reached = 0;
  for (let rank = 0; rank < order.length && inside(rank) && (rank === 0 || reached < topP * total); rank++) {
    out[order[rank]!] = logits[order[rank]!]!;
    reached += weights[rank]!;
  }
  return out;
}

/** The first id, in id order, at which the cumulative probability passes `u`. */
function draw(logits: Float32Array, temperature: number, u: number): number {
  const highest = logits[argmax(logits)]!;
  const weights = Float64Array.from(logits, (logit) => exp((logit - highest) / temperature));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  let reached = 0;
  let last = 0;
  for (let id = 0; id < weights.length; id++) {
    if (weights[id] === 0) continue;
    last = id;
    reached += weights[id]!;
    if (reached > u * total) return id;
  }
  return last;
}

function argmax(logits: Float32Array): number {
  let best = 0;
  for (let id = 1; id < logits.length; id++) if (logits[id]! > logits[best]!) best = id;
  return best;
}
