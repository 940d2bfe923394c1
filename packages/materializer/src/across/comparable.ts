/** Which trained tokens of a sample an engine can score again, and at which temperature. Pure. */
import type { ReadSample } from "../audit/read-output.js";
import { FILLED_IN, SAMPLING_SETTINGS } from "../recipe/sampling-settings.js";

/** Trained tokens of one turn's span. */
export interface ComparedSpan {
  start: number;
  end: number;
  turn: number;
  temperature: number;
}

export interface Comparable {
  spans: ComparedSpan[];
  /** Turns, and their trained tokens, whose distribution the engine cannot be asked for. */
  not_comparable: { turns: number; tokens: number };
}

type SampleTurn = NonNullable<ReadSample["turns"]>[number];

/**
 * A turn is comparable when it was sampled at temperature 1 without filters or penalties; with `anyTemperature`, of an engine that scores at a
 * given one, also at another temperature where the recorded values are those of the distribution after it.
 */
export function comparableSpans(sample: ReadSample, anyTemperature: boolean): Comparable {
  const turns = new Map((sample.turns ?? []).map((turn) => [turn.turn, turn]));
  const spans: ComparedSpan[] = [];
  const left = new Set<number>();
  let tokens = 0;
  for (const { start, end, turn, reason } of sample.spans) {
    if (reason !== "trained") continue;
    const temperature = scoringTemperature(turns.get(turn), anyTemperature);
    if (temperature !== null) spans.push({ start, end, turn, temperature });
    else {
      left.add(turn);
      tokens += end - start;
    }
  }
  return { spans, not_comparable: { turns: left.size, tokens } };
}

function scoringTemperature(turn: SampleTurn | undefined, anyTemperature: boolean): number | null {
  if (turn === undefined) return null;
  const filters = SAMPLING_SETTINGS.filter((name) => name !== "temperature");
  if (filters.some((name) => !(FILLED_IN[name] as readonly (number | null)[]).includes(turn[name]))) return null;
  if (turn.temperature === 1) return 1;
  return anyTemperature && turn.logprob_mode === "processed" && turn.temperature !== null ? turn.temperature : null;
}

/** The weights that sampled a token, by name; a range and a name that is not on record count as they are written. */
export function versionAt(sample: ReadSample, turn: number, token: number): string {
  const spans = sample.turns?.find((each) => each.turn === turn)?.weight_versions ?? [];
  return spans.find((span) => span.start <= token && token < span.end)?.version ?? "unknown";
}
