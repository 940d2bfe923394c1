/**
 * What an engine's replies lost on their way to the record: ids, or what proves them. Counted alike while it is recorded, at the seal, by
 * `tito run`, by `tito verify` and in the report of `tito materialize`, so that a loss has the same words everywhere. Pure.
 */
import type { TurnRecord, UncapturedRecord } from "./records.js";

/**
 * Defects of a whole answer that say: evidence is missing, or contradicts itself. Not among them are answers that were cut short, which somebody sees
 * end, single values that an engine never has (`logprob_not_finite`), and counts that it never tells (`usage_missing`).
 */
const LOST: ReadonlySet<string> = new Set([
  "prompt_ids_missing",
  "sampled_ids_missing",
  "ids_invalid",
  "completion_count_disagrees",
  "token_positions_disagree",
  "prompt_count_disagrees",
  "ids_logprobs_disagree",
  "logprobs_missing",
  "logprob_positive",
  "usage_lost",
  "prompt_changed",
  "extra_choices",
]);

/** Losses of ids, or of the count that proves that none is missing: what was sampled is not all on record, or may not be. */
const IDS_LOST: ReadonlySet<string> = new Set([
  "prompt_ids_missing",
  "sampled_ids_missing",
  "ids_invalid",
  "completion_count_disagrees",
  "token_positions_disagree",
  "usage_lost",
]);

/** Ids are missing or may be, and not only values or a prompt's count. */
export function losesIds(defects: readonly string[]): boolean {
  return defects.some((defect) => IDS_LOST.has(defect));
}

/** Those of `defects` that are a loss. */
export function lossesIn(defects: readonly string[]): string[] {
  return defects.filter((defect) => LOST.has(defect));
}

export interface CaptureLoss {
  /** Calls with ids, and those of them whose evidence is not whole. */
  turns: number;
  damaged_turns: number;
  /** Calls that were answered and of which no id is on record. */
  calls_without_ids: number;
  /** Sampled ids on record, and tokens that an engine counted beyond them in its damaged turns. */
  sampled_tokens: number;
  missing_tokens: number;
  /** Defect, or reason of a call without ids → how often. */
  causes: Record<string, number>;
}

type LossTurn = Pick<TurnRecord, "defects" | "usage"> & { sampled_ids: { readonly length: number } };

export class LossCount {
  private readonly causes = new Map<string, number>();
  private turns = 0;
  private damaged = 0;
  private withoutIds = 0;
  private sampled = 0;
  private missing = 0;

  /** Returns the losses of this turn; empty for a whole one. */
  turn({ defects, usage, sampled_ids }: LossTurn): string[] {
    const losses = lossesIn(defects);
    this.turns += 1;
    this.sampled += sampled_ids.length;
    if (losses.length === 0) return losses;
    this.damaged += 1;
    this.missing += Math.max(0, (usage.completion_tokens ?? 0) - sampled_ids.length);
    for (const loss of losses) this.add(loss);
    return losses;
  }

  uncaptured({ reason, lost_tokens }: Pick<UncapturedRecord, "reason" | "lost_tokens">): void {
    if (!lost_tokens) return;
    this.withoutIds += 1;
    this.add(reason);
  }

  private add(cause: string): void {
    this.causes.set(cause, (this.causes.get(cause) ?? 0) + 1);
  }

  /** Null where nothing was lost. */
  get loss(): CaptureLoss | null {
    if (this.damaged === 0 && this.withoutIds === 0) return null;
    return {
      turns: this.turns,
      damaged_turns: this.damaged,
      calls_without_ids: this.withoutIds,
      sampled_tokens: this.sampled,
      missing_tokens: this.missing,
      causes: Object.fromEntries([...this.causes].sort(([a], [b]) => (a < b ? -1 : 1))),
    };
  }
}

/** A loss as one line: what is missing, of how much, and why. */
export function lossInWords(loss: CaptureLoss): string {
  const { turns, damaged_turns, calls_without_ids, sampled_tokens, missing_tokens, causes } = loss;
  const parts = [
    ...(calls_without_ids === 0 ? [] : [`${calls_without_ids} of ${turns + calls_without_ids} calls have no ids`]),
    ...(damaged_turns === 0 ? [] : [`${damaged_turns} of ${turns} turns are damaged`]),
    ...(missing_tokens === 0
      ? []
      : [`${missing_tokens} of ${sampled_tokens + missing_tokens} sampled tokens are missing`]),
  ];
  const why = Object.entries(causes).map(([cause, count]) => `${cause} ${count}`);
  return `${parts.join(", ")} (${why.join(", ")})`;
}
