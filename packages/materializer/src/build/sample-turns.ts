/** What a trainer must know of a sample's turns: how each was sampled, and by which weights. Pure. */
import type { EvidenceTurn } from "../read/evidence.js";
import { versionNumbers } from "../read/versions.js";
import type { SamplingDefaults, SamplingSetting } from "../recipe/sampling-settings.js";
import type { PlannedSample, PlannedSpan } from "./build.js";
import { statedSettings } from "./sampling.js";

/** How one turn of a sample was sampled. A setting that nothing states is null. */
export interface SampleTurn extends Record<SamplingSetting, number | null> {
  turn: number;
  lane: string;
  finish_reason: string;
  logprob_mode: EvidenceTurn["logprob_mode"];
  /** Which weights made which tokens, `[start, end)` in the sample. `number`: the oldest version that it can be. */
  weight_versions: { start: number; end: number; version: string; number: number | null }[];
}

/** The turns of a sample's action spans, in order of their first token. `defaults`: what the user states of settings that a turn does not. */
export function sampleTurns(sample: PlannedSample, defaults: SamplingDefaults): SampleTurn[] {
  const spans = new Map<EvidenceTurn, PlannedSpan[]>();
  for (const span of sample.spans) {
    if (span.kind !== "action") continue;
    const own = spans.get(span.turn);
    if (own) own.push(span);
    else spans.set(span.turn, [span]);
  }
  return [...spans].map(([turn, own]) => ({
    turn: turn.turn,
    lane: turn.lane,
    finish_reason: turn.finish_reason,
    logprob_mode: turn.logprob_mode,
    ...statedSettings(turn.sampling, defaults),
    weight_versions: versionsOf(turn, own),
  }));
}

/** The turn's version spans, moved to where its ids stand in the sample and cut to those that it shows. */
function versionsOf(turn: EvidenceTurn, spans: readonly PlannedSpan[]): SampleTurn["weight_versions"] {
  const first = spans[0]!;
  const last = spans[spans.length - 1]!;
  const offset = first.start - first.from;
  return turn.weight_versions
    .map(({ version, start, end }) => ({
      start: Math.max(start + offset, first.start),
      end: Math.min(end + offset, last.end),
      version,
      number: versionNumbers(version)?.oldest ?? null,
    }))
    .filter(({ start, end }) => start < end);
}

/** The one temperature of all turns that train; null when there are several, none, or one is not on record. */
export function trainedTemperature(sample: PlannedSample, turns: readonly SampleTurn[]): number | null {
  const trained = trainedTurns(sample);
  const seen = new Set(turns.filter(({ turn }) => trained.has(turn)).map(({ temperature }) => temperature));
  return seen.size === 1 ? [...seen][0]! : null;
}

/** Oldest and newest version of the trained tokens; both null when nothing trains or a version has no number. */
export function trainedVersions(
  sample: PlannedSample,
  turns: readonly SampleTurn[],
): { version_min: number | null; version_max: number | null } {
  const none = { version_min: null, version_max: null };
  const trained = sample.spans.filter((span) => span.reason === "trained");
  const numbers = turns
    .flatMap(({ weight_versions }) => weight_versions)
    .filter(({ start, end }) => trained.some((span) => span.start < end && start < span.end))
    .map(({ version }) => versionNumbers(version));
  const known = numbers.filter((ends) => ends !== null);
  if (known.length === 0 || known.length < numbers.length) return none;
  return {
    version_min: Math.min(...known.map(({ oldest }) => oldest)),
    version_max: Math.max(...known.map(({ newest }) => newest)),
  };
}

function trainedTurns(sample: PlannedSample): Set<number> {
  return new Set(sample.spans.filter((span) => span.reason === "trained").map((span) => span.turn.turn));
}
