/** How well two lists of log probabilities agree, in sums that can be added up over thousands of samples. Pure. */

/** Sums over pairs (recorded, scored again). `a` and `b` are probabilities, exp(logprob). */
export interface Agreement {
  tokens: number;
  mean_a: number;
  mean_b: number;
  /** Sums of squared deviations, and of their products. */
  m2_a: number;
  m2_b: number;
  c_ab: number;
  /** Of |Δ log probability|. */
  difference_sum: number;
  difference_max: number;
  /** Tokens with |Δ| above `FAR`. */
  far: number;
  /** Tokens whose recorded value is exactly 0 while the engine is not certain: what zero-filling leaves. */
  zeros: number;
}

/** What different kernels and float formats do not explain. */
const FAR = 0.5;
/** An engine that computes in float32 gives 0 for what it is certain of; half precision is this far off. */
const CERTAIN = -0.01;
/** Below this variance a correlation says nothing. */
const VARIANCE_MIN = 1e-12;

export const NO_AGREEMENT: Agreement = {
  tokens: 0,
  mean_a: 0,
  mean_b: 0,
  m2_a: 0,
  m2_b: 0,
  c_ab: 0,
  difference_sum: 0,
  difference_max: 0,
  far: 0,
  zeros: 0,
};

export function agreementOf(recorded: number, scored: number): Agreement {
  const difference = Math.abs(recorded - scored);
  return {
    ...NO_AGREEMENT,
    tokens: 1,
    mean_a: Math.exp(recorded),
    mean_b: Math.exp(scored),
    difference_sum: difference,
    difference_max: difference,
    far: difference > FAR ? 1 : 0,
    zeros: recorded === 0 && scored < CERTAIN ? 1 : 0,
  };
}

/** Chan's parallel form: no catastrophic cancellation, whatever the order of the parts. */
export function addAgreement(x: Agreement, y: Agreement): Agreement {
  const tokens = x.tokens + y.tokens;
  if (tokens === 0) return NO_AGREEMENT;
  const [a, b] = [y.mean_a - x.mean_a, y.mean_b - x.mean_b];
  const [share, weight] = [y.tokens / tokens, (x.tokens * y.tokens) / tokens];
  return {
    tokens,
    mean_a: x.mean_a + a * share,
    mean_b: x.mean_b + b * share,
    m2_a: x.m2_a + y.m2_a + a * a * weight,
    m2_b: x.m2_b + y.m2_b + b * b * weight,
    c_ab: x.c_ab + y.c_ab + a * b * weight,
    difference_sum: x.difference_sum + y.difference_sum,
    difference_max: Math.max(x.difference_max, y.difference_max),
    far: x.far + y.far,
    zeros: x.zeros + y.zeros,
  };
}

/** Pearson over probabilities; null where a variance is too small to say anything. */
export function correlationOf({ tokens, m2_a, m2_b, c_ab }: Agreement): number | null {
  if (tokens < 2 || m2_a / tokens < VARIANCE_MIN || m2_b / tokens < VARIANCE_MIN) return null;
  return c_ab / Math.sqrt(m2_a * m2_b);
}
