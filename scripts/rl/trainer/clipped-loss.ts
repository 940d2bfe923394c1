/** The policy-gradient loss of one token, as GRPO and PPO have it. */

export interface TokenLossInput {
  readonly logprob: number;
  readonly oldLogprob: number;
  readonly advantage: number;
  readonly weight: number;
  /** The ratio counts between 1 − clip and 1 + clip. */
  readonly clip: number;
}

/** −weight × min(ratio × advantage, clipped ratio × advantage), its slope by the log probability, and whether the clip held it. */
export function clippedLoss(input: TokenLossInput): { loss: number; slope: number; ratio: number; clipped: boolean } {
  const { logprob, oldLogprob, advantage, weight, clip } = input;
  const ratio = Math.exp(logprob - oldLogprob);
  const bounded = Math.min(Math.max(ratio, 1 - clip), 1 + clip);
  const clipped = bounded * advantage < ratio * advantage;
  const gain = (clipped ? bounded : ratio) * advantage;
  return { loss: -weight * gain, slope: clipped ? 0 : -weight * ratio * advantage, ratio, clipped };
}
