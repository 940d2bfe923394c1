import { type HarnessRules, NO_RULES } from "../rules.js";

/** A summary request is the main history with one more user message; sub-agents are found by their own system text. */
export const qwen: HarnessRules = {
  ...NO_RULES,
  harness: "qwen",
  version: "1",
  observed: "0.24.4",
  user_agents: ["QwenCode/"],
  lanes: [
    {
      name: "compaction_prompt",
      when: { system_contains: "summarizes internal chat history" },
      lane: "compaction",
    },
  ],
  compaction_markers: ["<state_snapshot>"],
};
