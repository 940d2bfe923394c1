import { type HarnessRules, NO_RULES } from "../rules.js";

/** No session headers by default, no side calls but summaries, which are prompts of their own without tools. */
export const pi: HarnessRules = {
  ...NO_RULES,
  harness: "pi",
  version: "1",
  observed: "0.73.1, 0.74.2, 1.6.0",
  user_agents: ["pi/"],
  lanes: [
    {
      name: "summary",
      when: { tools: "none", system_starts: "You are a context summarization assistant" },
      lane: "compaction",
    },
  ],
  compaction_markers: ["The conversation history before this point was compacted"],
};
