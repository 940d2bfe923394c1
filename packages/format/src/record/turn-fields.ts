/** The fields of a turn record and of what it is made of, in the order in which they are written. docs/format.md#turn describes them. */
import {
  bytes,
  count,
  detail,
  digest,
  type Field,
  flag,
  ids,
  invalid,
  jsonMap,
  list,
  logprobs,
  longText,
  millis,
  name,
  nullable,
  oneOf,
  optional,
  record,
  tokenId,
} from "./fields.js";
import { LIMITS } from "./limits.js";
import type { ContentPart, Message, ToolCall, ToolDefinition } from "./messages.js";
import type { Wire } from "./payload-reader.js";
import type { DecisionEvidence, Junction, Lane, TurnRecord, VersionSpan } from "./records.js";

/** `text` or `other`, told apart by `type`. */
const contentPart: Field<ContentPart> = {
  read(wire, path) {
    if (wire instanceof Map && wire.get("type") === "text") {
      return { type: "text", text: longText.read(wire.get("text"), `${path}.text`) };
    }
    if (wire instanceof Map && wire.get("type") === "other") {
      return { type: "other", kind: name.read(wire.get("kind"), `${path}.kind`) };
    }
    throw invalid(path, "a content part", wire);
  },
  write(value, path) {
    const parts: [string, Wire][] =
      value.type === "text"
        ? [
            ["type", "text"],
            ["text", longText.write(value.text, `${path}.text`)],
          ]
        : [
            ["type", "other"],
            ["kind", name.write(value.kind, `${path}.kind`)],
          ];
    return new Map(parts);
  },
};

const contentParts = list(contentPart, LIMITS.messagesMax);

/** Text, parts or null; absent stays absent. */
const content: Field<string | ContentPart[] | null> = {
  read(wire, path) {
    if (wire === null) return null;
    return Array.isArray(wire) ? contentParts.read(wire, path) : longText.read(wire, path);
  },
  write(value, path) {
    if (value === null) return null;
    return Array.isArray(value) ? contentParts.write(value, path) : longText.write(value, path);
  },
};

const toolCall = record<ToolCall>({ id: name, name, arguments: longText });

const message: Field<Message> = record<Message>({
  role: oneOf(["system", "developer", "user", "assistant", "tool"]),
  content: optional(content),
  reasoning: optional(longText),
  tool_calls: optional(list(toolCall, LIMITS.toolsMax)),
  tool_call_id: optional(name),
  name: optional(name),
} as { [K in keyof Message]-?: Field<Message[K]> });

const tool: Field<ToolDefinition> = record<ToolDefinition>({
  name,
  description: optional(longText),
  parameters: optional(longText),
  strict: optional(flag),
} as { [K in keyof ToolDefinition]-?: Field<ToolDefinition[K]> });

const LANE_PATTERN = /^(main|compaction|(sub|aux):.+)$/s;

const lane: Field<Lane> = {
  read: (wire, path) => checkLane(name.read(wire, path), path),
  write: (value, path) => checkLane(name.write(value, path) as string, path),
};

function checkLane(value: string, path: string): Lane {
  if (!LANE_PATTERN.test(value)) throw invalid(path, "main, compaction, sub:<id> or aux:<kind>", value);
  return value as Lane;
}

/** A stop token id, a stop string, or null. */
const stopReason: Field<number | string | null> = {
  read(wire, path) {
    if (wire === null) return null;
    return typeof wire === "string" ? detail.read(wire, path) : tokenId.read(wire, path);
  },
  write(value, path) {
    if (value === null) return null;
    return typeof value === "string" ? detail.write(value, path) : tokenId.write(value, path);
  },
};

const evidence = record<DecisionEvidence>({
  match_tokens: count,
  against_tokens: count,
  expected_id: nullable(tokenId),
  actual_id: nullable(tokenId),
  kept_sampled: count,
  cause: nullable(name),
  cause_detail: nullable(detail),
  checkpoint_tokens: optional(count),
  checkpoint_call_id: optional(nullable(name)),
  against_call_id: optional(nullable(name)),
  fallback: optional(record({ reason: name, detail })),
  shadow: optional(record({ full_tokens: count, match_tokens: count })),
} as { [K in keyof DecisionEvidence]-?: Field<DecisionEvidence[K]> });

const junction = record<Junction>({ kind: name, seam_ids: ids, certificate: detail });
const versionSpan = record<VersionSpan>({ version: name, start: count, end: count });

export const turnFields: Field<TurnRecord> = record<TurnRecord>({
  call_id: name,
  lane,
  lane_evidence: record({ rule: name, detail }),
  dialect: oneOf(["chat", "completions", "responses", "messages"]),
  stream: oneOf(["live", "synthetic", "none"]),
  messages_keep: count,
  messages_new: list(message, LIMITS.messagesMax),
  tools: nullable(list(tool, LIMITS.toolsMax)),
  tools_sha256: digest,
  sampling: jsonMap,
  logprob_mode: oneOf(["raw", "processed", "unknown"]),
  prompt_mode: oneOf(["full_history", "incremental"]),
  prompt_keep: count,
  prompt_suffix: ids,
  prompt_sha256: bytes(32),
  sampled_ids: ids,
  logprobs: nullable(logprobs),
  logprob_gaps: list(record({ index: count, was: name }), LIMITS.idsMax),
  finish_reason: oneOf(["stop", "length", "tool_calls", "abort", "error", "unknown"]),
  stop_reason: stopReason,
  defects: list(name, 1000),
  usage: record({
    prompt_tokens: nullable(count),
    completion_tokens: nullable(count),
    cached_tokens: nullable(count),
  }),
  weight_versions: list(versionSpan, LIMITS.spansMax),
  engine: record({ kind: name, version: nullable(name), model: name }),
  renderer_contract: name,
  decision: record({ kind: oneOf(["append", "branch", "new_segment"]), reason: name, evidence }),
  junction: nullable(junction),
  message,
  malformed: flag,
  special_text_escaped: flag,
  upstream_request_id: nullable(name),
  times: record({
    received_ms: millis,
    sent_ms: millis,
    first_token_ms: nullable(millis),
    finished_ms: millis,
  }),
  stream_reason: optional(name),
  engine_finish: optional(name),
} as { [K in keyof TurnRecord]-?: Field<TurnRecord[K]> });
