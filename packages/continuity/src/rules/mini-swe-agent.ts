import { type HarnessRules, NO_RULES } from "../rules.js";

/** One conversation that only grows; no side calls, no session headers. */
export const miniSweAgent: HarnessRules = {
  ...NO_RULES,
  harness: "mini-swe-agent",
  version: "1",
  observed: "text-based and tool-calling configurations",
  lanes: [],
};
