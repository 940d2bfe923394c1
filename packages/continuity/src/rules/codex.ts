import { type HarnessRules, NO_RULES } from "../rules.js";

/** A summary request is the history and one more user message, with an empty tools list. */
export const codex: HarnessRules = {
  ...NO_RULES,
  harness: "codex",
  version: "1",
  observed: "0.171.0",
  user_agents: ["codex_exec/", "codex_cli_rs/"],
  lanes: [
    { name: "sub_agent", when: { header: "x-openai-subagent" }, lane: { sub_header: "thread-id" } },
    { name: "sub_thread", when: { header: "x-codex-parent-thread-id" }, lane: { sub_header: "thread-id" } },
    {
      name: "compaction_header",
      when: { header: "x-codex-turn-metadata", header_contains: '"request_kind":"compaction"' },
      lane: "compaction",
    },
    {
      name: "compaction_prompt",
      when: { tools: "none", last_user_starts: "You are performing a CONTEXT CHECKPOINT COMPACTION" },
      lane: "compaction",
    },
  ],
  compaction_markers: ["Another language model started"],
};
