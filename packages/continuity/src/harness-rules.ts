/** The rule data of all known harnesses, by name and by user agent. */
import { type HarnessRules, NO_RULES } from "./rules.js";

export const HARNESS_RULES: readonly HarnessRules[] = [];

/** The rules of a harness by its name; rules that tolerate nothing when it is not known. */
export function rulesFor(harness: string | null): HarnessRules {
  return HARNESS_RULES.find((rules) => rules.harness === harness) ?? NO_RULES;
}
