import { type HarnessRules, NO_RULES } from "../rules.js";

/** Main and sub-agent requests never name a token limit and always offer tools; the summariser does the opposite. */
export const cline: HarnessRules = {
  ...NO_RULES,
  harness: "cline",
  version: "1",
  observed: "3.0.65",
  lanes: [{ name: "summary", when: { tools: "none", max_tokens_at_most: 8192 }, lane: "compaction" }],
};
