import { type HarnessRules, NO_RULES } from "../rules.js";

/** Title and summary calls carry the main session id; sub-agents have a session id of their own and name their parent. */
export const opencode: HarnessRules = {
  ...NO_RULES,
  harness: "opencode",
  version: "1",
  observed: "1.18.33",
  user_agents: ["opencode/"],
  lanes: [
    { name: "sub_agent", when: { header: "x-parent-session-id" }, lane: { sub_header: "x-session-id" } },
    { name: "title", when: { tools: "none", system_starts: "You are a title generator" }, lane: { aux: "title" } },
    {
      name: "summary",
      when: { tools: "none", system_starts: "You are a context summarization agent" },
      lane: "compaction",
    },
  ],
  compaction_markers: ["What did we do so far?"],
  pruned_markers: ["[Old tool result content cleared]"],
};
