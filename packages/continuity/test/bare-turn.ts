import type { EngineTurn } from "../src/index.js";

/** A turn whose messages say nothing, so that the ids alone speak. */
export function bareTurn(
  callId: string,
  prompt: readonly number[],
  sampled: readonly number[],
  more: Partial<EngineTurn> = {},
): EngineTurn {
  return {
    call_id: callId,
    prompt_ids: Int32Array.from(prompt),
    sampled_ids: Int32Array.from(sampled),
    checkpointable: sampled.length > 0,
    lane: "main",
    messages: [],
    reply: { role: "assistant", content: callId },
    tools_sha256: "none",
    renderer_contract: "engine:test",
    retry_of: null,
    harness: null,
    arrived_after: null,
    ...more,
  };
}
