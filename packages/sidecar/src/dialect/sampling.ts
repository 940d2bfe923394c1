/** The sampling fields that a harness may send itself, under the names that engines use. */
import type { Fields } from "../json/fields.js";

const SAMPLING_FIELDS = [
  "temperature",
  "top_p",
  "top_k",
  "min_p",
  "seed",
  "presence_penalty",
  "frequency_penalty",
  "repetition_penalty",
] as const;

/** Reads the numbers that are there; null counts as absent. */
export function readSampling(fields: Fields): Record<string, number> {
  const sampling: Record<string, number> = {};
  for (const name of SAMPLING_FIELDS) {
    const value = fields.number(name);
    if (value !== null) sampling[name] = value;
  }
  return sampling;
}
