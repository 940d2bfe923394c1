import { type HarnessRules, NO_RULES } from "../rules.js";

/** A summary request is the history and one more user message, tools still offered. */
export const continueCli: HarnessRules = {
  ...NO_RULES,
  harness: "continue",
  version: "1",
  observed: "1.5.47",
  lanes: [
    {
      name: "compaction_prompt",
      when: { last_user_starts: "Please provide a concise summary" },
      lane: "compaction",
    },
  ],
};
