import type { Step } from "./loop.js";

/** Joins up to `tokens` steps into one, as an engine does that decodes speculatively or streams at intervals. */
export async function* coalesce(steps: AsyncIterable<Step>, tokens: number): AsyncGenerator<Step, void, void> {
  let joined: Step = { draws: [], pieces: [], finish: null };
  for await (const step of steps) {
    joined = {
      draws: [...joined.draws, ...step.draws],
      pieces: [...joined.pieces, ...step.pieces],
      finish: step.finish,
    };
    if (step.finish === null && joined.draws.length < tokens) continue;
    yield joined;
    joined = { draws: [], pieces: [], finish: null };
  }
}
