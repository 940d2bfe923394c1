/** The rule data of all known harnesses. */

import { claude } from "./rules/claude.js";
import { cline } from "./rules/cline.js";
import { codex } from "./rules/codex.js";
import { continueCli } from "./rules/continue.js";
import { miniSweAgent } from "./rules/mini-swe-agent.js";
import { opencode } from "./rules/opencode.js";
import { pi } from "./rules/pi.js";
import { qwen } from "./rules/qwen.js";
import { type HarnessRules, NO_RULES } from "./rules.js";

export const HARNESS_RULES: readonly HarnessRules[] = [
  pi,
  opencode,
  codex,
  claude,
  miniSweAgent,
  qwen,
  cline,
  continueCli,
];

/** What holds for requests of any harness. Tried after the harness's own rules. */
export const GENERIC_RULES: HarnessRules = {
  ...NO_RULES,
  harness: "generic",
  version: "1",
  lanes: [
    { name: "count_tokens", when: { path_ends: "/count_tokens" }, lane: { aux: "token_count" } },
    { name: "input_tokens", when: { path_ends: "/input_tokens" }, lane: { aux: "token_count" } },
    { name: "title_system", when: { tools: "none", system_contains: "title generator" }, lane: { aux: "title" } },
    { name: "title_user", when: { tools: "none", first_user_starts: "Generate a title" }, lane: { aux: "title" } },
  ],
};

/** The rules of a harness by its name; rules that tolerate nothing when it is not known. */
export function rulesFor(harness: string | null): HarnessRules {
  return HARNESS_RULES.find((rules) => rules.harness === harness) ?? NO_RULES;
}
