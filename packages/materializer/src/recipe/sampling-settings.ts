/** The sampling settings that an engine fills in by itself, and what a user states about them. */

/** The settings that an engine fills in by itself when a request leaves them out, with the values that change nothing. `-1` and `0` switch `top_k` off. */
export const FILLED_IN = {
  temperature: [1],
  top_p: [1],
  top_k: [-1, 0],
  min_p: [0],
  repetition_penalty: [1],
  presence_penalty: [0],
  frequency_penalty: [0],
} as const satisfies Record<string, readonly number[]>;
export type SamplingSetting = keyof typeof FILLED_IN;
export const SAMPLING_SETTINGS = Object.keys(FILLED_IN) as SamplingSetting[];

/** What the user states about the settings that a turn does not state. */
export type SamplingDefaults = { readonly [K in SamplingSetting]?: number | undefined };

/** Every setting at the value that changes nothing: what `neutral` means. */
export const NEUTRAL_SAMPLING: SamplingDefaults = Object.fromEntries(
  SAMPLING_SETTINGS.map((name) => [name, FILLED_IN[name][0]]),
);
