/** Names the cause where one message came back in another spelling or with another value. */
import { type Drift, drift } from "./drift-causes.js";
import { type DriftPlace, explainMisalignment, isSystem, mergesCalls, summaryIn } from "./explain-misalignment.js";
import { compareMessages, flatText, type MessageDifference } from "./message.js";
import { type HarnessRules, withoutVolatile } from "./rules.js";

/** `difference` is what was found between the two messages at the place. */
export function explainMessage(place: DriftPlace, difference: MessageDifference): Drift {
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
      return isSystem(stored)
        ? drift("system_changed", `${where}: white space`)
        : drift("content_trimmed", `${where}: white space around the text`);
    case "content":
      return explainContent(place, where);
    case "content_shape":
    case "role_alias":
      return drift("content_reshaped", `${where}: same text in another shape`);
    case "tool_call_ids":
      return explainCalls(place, where);
    case "tool_call_ids_renamed":
    case "tool_call_id":
      return drift("tool_call_id_renamed", `${where}: the same call under another id`);
    case "role":
      return explainMisalignment(place);
  }
}

/** The two messages hold other calls: fewer, more, or none in common. */
function explainCalls(place: DriftPlace, where: string): Drift {
  const stored = place.earlier[place.index]!.tool_calls ?? [];
  const returned = place.next[place.index]!.tool_calls ?? [];
  if (mergesCalls(place.earlier[place.index]!, place.next[place.index]!))
    return drift("merged_turn", `${where}: the reply's tool calls among others`);
  if (returned.length < stored.length)
    return drift(
      "tool_call_dropped",
      `${where}: ${stored.length - returned.length} of ${stored.length} call(s) left out`,
    );
  return drift("tool_call_rewritten", `${where}: other calls`);
}

function explainRename(place: DriftPlace, where: string): Drift {
  const differences = compareMessages(place.earlier[place.index]!, place.next[place.index]!, place.rules);
  if (differences.includes("arguments"))
    return drift("tool_call_rewritten", `${where}: another tool and other arguments`);
  return drift("tool_renamed", `${where}: another tool name`);
}

function explainContent(place: DriftPlace, where: string): Drift {
  const message = place.earlier[place.index]!;
  const stored = flatText(message.content);
  const returned = flatText(place.next[place.index]!.content);
  const { role } = message;
  const left = withoutVolatile(stored, place.rules);
  const right = withoutVolatile(returned, place.rules);
  if (left.text === right.text) {
    const names = [...new Set([...left.names, ...right.names])].join(", ");
    return drift("volatile_text", `${where}: ${names}`);
  }
  if (isSystem(message)) return drift("system_changed", `${where}: another text`);
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
