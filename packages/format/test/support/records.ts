/** Records for tests: whole, small, and the same at every run. */
import { createHash } from "node:crypto";
import { promptDigest } from "../../src/read/lines.js";
import { toLogprobs } from "../../src/record/numbers.js";
import type { TurnRecord } from "../../src/record/records.js";
import { createTrajectoryWriter, type TrajectoryWriter } from "../../src/write/writer.js";
import type { TrajectoryWriterOptions } from "../../src/write/writer-types.js";

export function sha(text: string): Uint8Array {
  return createHash("sha256").update(text).digest();
}

export function ids(start: number, count: number): Int32Array {
  return Int32Array.from({ length: count }, (_, i) => start + i);
}

/** A turn whose prompt is `prompt`, of which the first `keep` ids are on the line already. */
export function turn(
  callId: string,
  prompt: Int32Array,
  sampled: Int32Array,
  keep = 0,
  more: Partial<TurnRecord> = {},
): TurnRecord {
  return {
    call_id: callId,
    lane: "main",
    lane_evidence: { rule: "first", detail: "" },
    dialect: "chat",
    stream: "live",
    messages_keep: 0,
    messages_new: [{ role: "user", content: `question of ${callId}` }],
    tools: [],
    tools_sha256: sha("[]"),
    sampling: { temperature: 1, stop: ["a"] },
    logprob_mode: "raw",
    prompt_mode: "full_history",
    prompt_keep: keep,
    prompt_suffix: prompt.slice(keep),
    prompt_sha256: promptDigest(prompt),
    sampled_ids: sampled,
    logprobs: toLogprobs(Array.from(sampled, (id) => -((id % 7) + 1) / 8)),
    logprob_gaps: [],
    finish_reason: "stop",
    stop_reason: null,
    defects: [],
    usage: { prompt_tokens: prompt.length, completion_tokens: sampled.length, cached_tokens: null },
    weight_versions: [{ version: "v1", start: 0, end: sampled.length }],
    engine: { kind: "vllm", version: "0.11", model: "m" },
    renderer_contract: "engine:00",
    decision: {
      kind: keep === 0 ? "new_segment" : "append",
      reason: keep === 0 ? "first_turn" : "extends_tip",
      evidence: {
        match_tokens: keep,
        against_tokens: keep,
        expected_id: null,
        actual_id: null,
        kept_sampled: 0,
        cause: null,
        cause_detail: null,
      },
    },
    junction: null,
    message: { role: "assistant", content: `answer of ${callId}` },
    malformed: false,
    special_text_escaped: false,
    upstream_request_id: null,
    times: {
      received_ms: 1_700_000_000_000,
      sent_ms: 1_700_000_000_001,
      first_token_ms: null,
      finished_ms: 1_700_000_000_009,
    },
    ...more,
  };
}

/** Makes the turns of one conversation: each prompt is everything before, then `added` new ids. */
export class Conversation {
  line: Int32Array = new Int32Array(0);
  private count = 0;

  constructor(
    private readonly name: string,
    private readonly added = 5,
    private readonly sampled = 4,
  ) {}

  next(more: Partial<TurnRecord> = {}): TurnRecord {
    const at = ++this.count;
    const keep = this.line.length;
    const prompt = concat(this.line, ids(1000 * at, this.added));
    const sampled = ids(1000 * at + 500, this.sampled);
    this.line = concat(prompt, sampled);
    return turn(`${this.name}-${at}`, prompt, sampled, keep, more);
  }
}

export function concat(a: Int32Array, b: Int32Array): Int32Array {
  const both = new Int32Array(a.length + b.length);
  both.set(a);
  both.set(b, a.length);
  return both;
}

/** An intent for a call with this body. */
export function intent(callId: string, body = `{"call":"${callId}"}`) {
  return {
    call_id: callId,
    dialect: "chat" as const,
    path: "/v1/chat/completions",
    headers: {},
    body: Buffer.from(body),
    received_ms: 1,
  };
}

/** A writer on trajectory t1 in `out`. */
export function openWriter(out: string, options: Partial<TrajectoryWriterOptions> = {}): Promise<TrajectoryWriter> {
  return createTrajectoryWriter({
    out,
    trajectoryId: "t1",
    configJson: "{}",
    writerVersion: "test",
    runId: "r1",
    ...options,
  });
}
