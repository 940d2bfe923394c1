/** The findings of an output in words, loudest first: what was lost, what trains without a name, what is not known. Pure. */
import { lossWords } from "../read/capture-loss.js";
import type { SummedFindings } from "./findings.js";

const SUSPECTS_SHOWN = 10;
/** Text that opens a segment once is a change like any other; what opens several splits every turn. */
const VOLATILE_SEGMENTS_MIN = 2;

export function findingWarnings(findings: SummedFindings): string[] {
  const { continuity, capture_loss, volatile_text, not_behaviour, untold_sampling, untold_finish_turns } = findings;
  return [
    ...capture_loss.map((loss) => `capture loss: ${lossWords(loss)}`),
    ...(continuity.trained_but_not_sampled > 0
      ? [`${continuity.trained_but_not_sampled} tokens train that were not sampled there`]
      : []),
    ...Object.entries(not_behaviour).map(
      ([why, tokens]) => `${tokens} sampled tokens have log probabilities of another distribution: ${why}${hint(why)}`,
    ),
    ...suspectWarnings(findings.side_calls),
    ...volatile_text
      .filter((cost) => cost.segments >= VOLATILE_SEGMENTS_MIN)
      .map(
        (cost) =>
          `${cost.text} changes by itself: it opened ${cost.segments} segments, and ${cost.reread_tokens} prompt tokens were read again`,
      ),
    ...(untold_sampling.length > 0
      ? [
          `nothing states ${untold_sampling.join(", ")} of calls whose processed log probabilities train: a trainer that scores them again does not know how they were sampled`,
        ]
      : []),
    ...(untold_finish_turns > 0 ? [`${untold_finish_turns} imported turns train and do not say why they ended`] : []),
  ];
}

function hint(why: string): string {
  return why.includes("nothing states") ? " (--sampling-defaults states what the engine's own settings were)" : "";
}

function suspectWarnings({ turns, trained_tokens, suspects }: SummedFindings["side_calls"]): string[] {
  if (turns === 0) return [];
  const shown = suspects
    .slice(0, SUSPECTS_SHOWN)
    .map(
      (each) =>
        `run ${each.run_id}, turn ${each.turn} (${each.lane}) trains ${each.trained_tokens} tokens: ${each.signs.join("; ")}: tito explain ${each.trajectory} --turn ${each.turn}`,
    );
  const what =
    turns === 1 ? "1 turn looks like a side call and trains" : `${turns} turns look like side calls and train`;
  const more = turns > shown.length ? [`and ${turns - shown.length} more turns that look like side calls`] : [];
  return [
    `${what} ${trained_tokens} tokens; rules of your own tell them apart: --lane-rules (docs/lane-rules.md)`,
    ...shown,
    ...more,
  ];
}
