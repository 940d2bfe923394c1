/** Names the message-level cause of a drift. Looks at messages only; the ids have already decided. */
import type { Message } from "@tito/format";
import { type Drift, drift } from "./drift-causes.js";
import { type DriftPlace, explainMisalignment, summaryIn } from "./explain-misalignment.js";
import { compareMessages, flatText, type MessageDifference } from "./message.js";
import { type HarnessRules, NO_RULES, withoutVolatile } from "./rules.js";
import { sameIdentity } from "./same-identity.js";

export interface DriftInput {
  /** The earlier turn's request messages. */
  previous: readonly Message[];
  /** Its reply, as returned to the harness. */
  reply: Message;
  /** The messages of the request that drifted. */
  next: readonly Message[];
  tools_changed: boolean;
  contract_changed: boolean;
  rules?: HarnessRules;
  /** Texts of recent summaries that the policy itself wrote. */
  summaries?: readonly string[];
}

/** Differences that most templates print alike; they explain a drift only when nothing else does. */
const FAINT: ReadonlySet<MessageDifference> = new Set(["content_shape", "role_alias"]);

/** The first difference in the order of the prompt gives the cause. */
export function explainDrift(input: DriftInput): Drift {
  if (input.contract_changed) return drift("contract_changed", "the renderer contract differs");
  if (input.tools_changed) return drift("tools_changed", "the tools list differs");
  const rules = input.rules ?? NO_RULES;
  const earlier = [...input.previous, input.reply];
  const { next } = input;
  let faint: number | null = null;
  for (let i = 0; i < Math.min(earlier.length, next.length); i++) {
    const differences = compareMessages(earlier[i]!, next[i]!, rules);
    const material = differences.find((difference) => !FAINT.has(difference));
    if (material === undefined) {
      if (differences.length > 0) faint ??= i;
      continue;
    }
    const place = { earlier, next, index: i, rules, summaries: input.summaries ?? [] };
    if (!sameIdentity(earlier[i]!, next[i]!)) return explainMisalignment(place);
    return explainMessage(place, material);
  }
  if (next.length < earlier.length)
    return drift(
      "history_truncated",
      `the request ends ${earlier.length - next.length} message(s) before the earlier one`,
    );
  return explainEqualMessages(next.slice(earlier.length), faint);
}

/** All messages are equal, so the template or the tokenizer makes the difference. */
function explainEqualMessages(added: readonly Message[], faint: number | null): Drift {
  if (added.some((message) => message.role === "user"))
    return drift("template_rewrite", "all messages are equal and a new user message follows");
  if (faint !== null) return drift("content_reshaped", `message ${faint}: same text in another shape`);
  return drift("retokenised", "all messages are equal and no user message follows");
}

/** The same message by role and ids, with another spelling or value. */
function explainMessage(place: DriftPlace, difference: MessageDifference): Drift {
  const stored = place.earlier[place.index]!;
  const where = `message ${place.index} (${stored.role})`;
  switch (difference) {
    case "reasoning_absent":
      return drift("reasoning_dropped", `${where}: reasoning left out`);
    case "reasoning_trimmed":
      return drift("reasoning_trimmed", `${where}: white space around the reasoning`);
    case "reasoning":
      return drift("reasoning_changed", `${where}: another reasoning text`);
    case "arguments_format":
      return drift("tool_arguments_reserialised", `${where}: same JSON value, other spelling`);
    case "arguments":
      return drift("tool_call_rewritten", `${where}: another value in the arguments`);
    case "name_listed":
      return drift("tool_renamed", `${where}: renamed as the rules of ${place.rules.harness} list it`);
    case "name":
      return explainRename(place, where);
    case "content_trimmed":
      return stored.role === "system" || stored.role === "developer"
        ? drift("system_changed", `${where}: white space`)
        : drift("content_trimmed", `${where}: white space around the text`);
    case "content":
      return explainContent(place, where);
    case "content_shape":
    case "role_alias":
      return drift("content_reshaped", `${where}: same text in another shape`);
    case "role":
    case "tool_call_id":
    case "tool_call_ids":
      return explainMisalignment(place);
  }
}

function explainRename(place: DriftPlace, where: string): Drift {
  const differences = compareMessages(place.earlier[place.index]!, place.next[place.index]!, place.rules);
  if (differences.includes("arguments"))
    return drift("tool_call_rewritten", `${where}: another tool and other arguments`);
  return drift("tool_renamed", `${where}: another tool name`);
}

function explainContent(place: DriftPlace, where: string): Drift {
  const stored = flatText(place.earlier[place.index]!.content);
  const returned = flatText(place.next[place.index]!.content);
  const role = place.earlier[place.index]!.role;
  const left = withoutVolatile(stored, place.rules);
  const right = withoutVolatile(returned, place.rules);
  if (left.text === right.text) {
    const names = [...new Set([...left.names, ...right.names])].join(", ");
    return drift("volatile_text", `${where}: ${names}`);
  }
  if (role === "system" || role === "developer") return drift("system_changed", `${where}: another text`);
  const summary = summaryIn([place.next[place.index]!], place.rules, place.summaries);
  if (role === "assistant" && summary !== null) return drift("compaction", `${where}: ${summary}`);
  if (role === "tool") return explainToolResult(stored, returned, where, place.rules);
  if (role === "assistant" && returned.length > stored.length && stored !== "" && returned.includes(stored))
    return drift("merged_turn", `${where}: the reply's text with more text around it`);
  if (role === "user") return explainMisalignment(place);
  return drift("content_changed", `${where}: another text`);
}

function explainToolResult(stored: string, returned: string, where: string, rules: HarnessRules): Drift {
  const placeholder = rules.pruned_markers.find((marker) => returned.includes(marker) && !stored.includes(marker));
  if (placeholder !== undefined) return drift("tool_results_pruned", `${where}: placeholder of ${rules.harness}`);
  if (returned.length < stored.length)
    return drift("tool_results_pruned", `${where}: ${stored.length} characters became ${returned.length}`);
  return drift("content_changed", `${where}: another result`);
}
