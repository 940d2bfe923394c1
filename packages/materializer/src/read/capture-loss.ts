/** How much of what an engine sampled is not on record, by the engine's own counts. Pure. */
import type { TrajectoryEvidence } from "./evidence.js";

export interface CaptureLoss {
  engine: string;
  /** Sampled tokens, as the engine counted them. */
  sampled_tokens: number;
  /** Of these, tokens whose ids are on no record. */
  lost_tokens: number;
  turns: number;
  /** Turns that lack some of their ids. */
  lost_turns: number;
  /** Turns without a count although the engine counts at other times: how much they lack is unknown. */
  uncounted_turns: number;
  /** Calls whose every id was lost; how many they had is unknown. */
  lost_calls: number;
}

const UNKNOWN = "unknown engine";

/** One entry an engine that lost something, in the order of their names. */
export function captureLosses(trajectories: readonly TrajectoryEvidence[]): CaptureLoss[] {
  const losses = new Map<string, CaptureLoss>();
  const of = (engine: string): CaptureLoss => {
    const known = losses.get(engine);
    if (known !== undefined) return known;
    const zero = { sampled_tokens: 0, lost_tokens: 0, turns: 0, lost_turns: 0, uncounted_turns: 0, lost_calls: 0 };
    const made = { engine, ...zero };
    losses.set(engine, made);
    return made;
  };
  for (const { turns, lost_calls } of trajectories) {
    for (const turn of turns) {
      const loss = of(turn.engine);
      const ids = turn.sampled_ids.length;
      const sampled = Math.max(ids, turn.usage.completion_tokens ?? ids);
      loss.turns += 1;
      loss.sampled_tokens += sampled;
      loss.lost_tokens += sampled - ids;
      if (sampled > ids) loss.lost_turns += 1;
      if (turn.defects.includes("usage_lost")) loss.uncounted_turns += 1;
    }
    if (lost_calls > 0) of(turns.at(-1)?.engine ?? UNKNOWN).lost_calls += lost_calls;
  }
  return sorted([...losses.values()].filter(isLoss));
}

export function addCaptureLosses(all: readonly (readonly CaptureLoss[])[]): CaptureLoss[] {
  const sums = new Map<string, CaptureLoss>();
  for (const loss of all.flat()) {
    const sum = sums.get(loss.engine);
    if (sum === undefined) sums.set(loss.engine, { ...loss });
    else
      for (const key of [
        "sampled_tokens",
        "lost_tokens",
        "turns",
        "lost_turns",
        "uncounted_turns",
        "lost_calls",
      ] as const)
        sum[key] += loss[key];
  }
  return sorted([...sums.values()]);
}

const isLoss = (loss: CaptureLoss): boolean => loss.lost_tokens + loss.uncounted_turns + loss.lost_calls > 0;

const sorted = (losses: CaptureLoss[]): CaptureLoss[] => losses.sort((a, b) => (a.engine < b.engine ? -1 : 1));

/** A loss in words. */
export function lossWords(loss: CaptureLoss): string {
  const parts = [
    ...(loss.lost_tokens > 0
      ? [
          `${loss.lost_tokens} of ${loss.sampled_tokens} sampled tokens lost their ids (in ${loss.lost_turns} of ${loss.turns} turns)`,
        ]
      : []),
    ...(loss.uncounted_turns > 0
      ? [`${loss.uncounted_turns} turns lost the engine's count, and maybe ids with it`]
      : []),
    ...(loss.lost_calls > 0 ? [`${loss.lost_calls} calls lost every id`] : []),
  ];
  return `${loss.engine}: ${parts.join("; ")}`;
}
