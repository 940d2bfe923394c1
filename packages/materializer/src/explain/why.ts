/** Why a token trains or not, in words: the text of its reason, and for a doubtful log probability what is doubted. Pure. */
import { behaviourDoubt } from "../build/sampling.js";
import type { EvidenceTurn } from "../read/evidence.js";
import type { Policy } from "../recipe/policy.js";
import { REASON_TEXTS, type SpanReason } from "../recipe/reasons.js";

export function whyOf(turn: EvidenceTurn, reason: SpanReason, policy: Policy): string {
  const text = REASON_TEXTS[reason];
  const doubt = reason === "logprob_not_behaviour" ? behaviourDoubt(turn, policy.select.sampling_defaults) : null;
  return doubt === null ? text : `${text} (${doubt})`;
}
