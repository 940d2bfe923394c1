/** The two figures of docs/continuity.md that must never be mixed up, counted from what is on record. Pure. */
import type { AssembledTrajectory } from "./assemble.js";

export interface ContinuityFigures {
  /** Turns whose prompt is not what rendering their messages afresh would give. Information: healthy above 0. */
  prompt_differs_from_canonical_replay: number;
  /** Turns of which that is known: rendered afresh (so that they cannot differ), or compared with a rendering. */
  prompts_compared: number;
  /** Turns that build on sampled ids and were compared with no rendering (`--shadow-render` compares more). */
  prompts_not_compared: number;
  /** Tokens with a loss mask that the engine did not sample there. Must be 0. */
  trained_but_not_sampled: number;
}

export const NO_FIGURES: ContinuityFigures = {
  prompt_differs_from_canonical_replay: 0,
  prompts_compared: 0,
  prompts_not_compared: 0,
  trained_but_not_sampled: 0,
};

export function continuityFigures({ evidence, built }: AssembledTrajectory): ContinuityFigures {
  const figures = { ...NO_FIGURES };
  for (const turn of evidence.turns) {
    const { shadow } = turn.decision.evidence;
    if (turn.spliced && shadow === undefined) figures.prompts_not_compared += 1;
    else figures.prompts_compared += 1;
    if (shadow === undefined) continue;
    const prompt = turn.prompt_keep + turn.prompt_suffix.length;
    const equal = shadow.match_tokens === shadow.full_tokens && shadow.full_tokens === prompt;
    if (!equal) figures.prompt_differs_from_canonical_replay += 1;
  }
  for (const { line, spans } of built.samples) {
    for (const { start, end, kind, turn, from, reason } of spans) {
      if (reason !== "trained") continue;
      for (let i = start; i < end; i += 1) {
        const sampled = kind === "action" ? turn.sampled_ids[from + i - start] : undefined;
        if (line.tokens[i] !== sampled) figures.trained_but_not_sampled += 1;
      }
    }
  }
  return figures;
}

export function addFigures(a: ContinuityFigures, b: ContinuityFigures): ContinuityFigures {
  return {
    prompt_differs_from_canonical_replay:
      a.prompt_differs_from_canonical_replay + b.prompt_differs_from_canonical_replay,
    prompts_compared: a.prompts_compared + b.prompts_compared,
    prompts_not_compared: a.prompts_not_compared + b.prompts_not_compared,
    trained_but_not_sampled: a.trained_but_not_sampled + b.trained_but_not_sampled,
  };
}
