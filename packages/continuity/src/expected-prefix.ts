/** How much of a prompt an engine may still have in its cache, because an earlier call of the trajectory ended with it. */
import type { Message } from "@tito/format";
import { type CheckpointQuery, findCheckpoint } from "./find-checkpoint.js";
import { walk } from "./prefix-tree.js";
import type { EngineState } from "./state.js";

/** Leading ids that the prompt shares with what was sent and sampled before. Ids settle it; where only messages are known, the checkpoint that they continue; null: unknown. */
export function expectedPrefix(
  state: EngineState,
  prompt: { ids: Int32Array } | (Omit<CheckpointQuery, "messages"> & { messages: readonly Message[] }),
): number | null {
  if ("ids" in prompt) return walk(state.tree, prompt.ids).depth;
  if (!prompt.messages.some((message) => message.role === "assistant")) return null;
  const found = findCheckpoint(state, prompt);
  return found.kind === "checkpoint" ? found.tokens : null;
}
