import { type HarnessRules, NO_RULES } from "../rules.js";

/**
 * Sub-agents are named by a header. A summary request is the history and one more text block, tools still offered.
 * Old tool names come back as new ones; a billing header in the system text and reminders change by themselves.
 */
export const claude: HarnessRules = {
  ...NO_RULES,
  harness: "claude",
  version: "1",
  observed: "2.1.332",
  user_agents: ["claude-cli/"],
  lanes: [
    {
      name: "sub_agent",
      when: { header: "x-claude-code-agent-id" },
      lane: { sub_header: "x-claude-code-agent-id" },
    },
    {
      name: "quota_probe",
      when: { tools: "none", max_tokens_at_most: 1, messages_at_most: 1, last_user_equals: "quota" },
      lane: { aux: "quota" },
    },
    { name: "title", when: { tools: "none", system_contains: "isNewTopic" }, lane: { aux: "title" } },
    {
      name: "compaction_prompt",
      when: { last_user_contains: "CRITICAL: Respond with TEXT ONLY" },
      lane: "compaction",
    },
  ],
  renames: [
    { sampled: "Task", echoed: "Agent" },
    { sampled: "KillShell", echoed: "TaskStop" },
  ],
  volatile: [
    { name: "billing_version", start: "cc_version=", end: ";" },
    { name: "billing_checksum", start: "cch=", end: ";" },
    { name: "system_reminder", start: "<system-reminder>", end: "</system-reminder>" },
    { name: "total_tokens", start: "<total_tokens>", end: "</total_tokens>" },
  ],
  compaction_markers: ["This session is being continued from a previous conversation"],
};
