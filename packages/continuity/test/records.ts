/** Turn records as a writer would make them from a decided turn. */
import { createHash } from "node:crypto";
import type { TurnRecord } from "@tito/format";
import type { Decision, EngineTurn } from "../src/index.js";

export function recordOf(turn: EngineTurn, decision: Decision): TurnRecord {
  const bytes = new Uint8Array(turn.prompt_ids.buffer, turn.prompt_ids.byteOffset, turn.prompt_ids.byteLength);
  return {
    call_id: turn.call_id,
    lane: turn.lane,
    lane_evidence: { rule: "test", detail: "" },
    dialect: "chat",
    stream: "live",
    messages_keep: decision.messages_keep,
    messages_new: turn.messages.slice(decision.messages_keep),
    tools: null,
    tools_sha256: Buffer.from(turn.tools_sha256, "hex"),
    sampling: {},
    logprob_mode: "raw",
    prompt_mode: "full_history",
    prompt_keep: decision.prompt_keep,
    prompt_suffix: turn.prompt_ids.slice(decision.prompt_keep),
    prompt_sha256: createHash("sha256").update(bytes).digest(),
    sampled_ids: turn.sampled_ids,
    logprobs: null,
    logprob_gaps: [],
    finish_reason: turn.checkpointable ? "stop" : "abort",
    stop_reason: null,
    defects: turn.checkpointable ? [] : ["aborted"],
    usage: { prompt_tokens: turn.prompt_ids.length, completion_tokens: turn.sampled_ids.length, cached_tokens: null },
    weight_versions: [],
    engine: { kind: "test", version: null, model: "toy" },
    renderer_contract: turn.renderer_contract,
    decision: { kind: decision.kind, reason: decision.reason, evidence: decision.evidence },
    junction: null,
    message: turn.reply,
    malformed: false,
    special_text_escaped: false,
    upstream_request_id: null,
    times: { received_ms: 0, sent_ms: 0, first_token_ms: null, finished_ms: 0 },
  };
}
