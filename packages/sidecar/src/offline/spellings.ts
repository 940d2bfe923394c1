/** How logs spell the fields of a call. */
import { TitoError } from "@tito/format";

export type JsonRecord = { readonly [key: string]: unknown };

/**
 * Ours first. Names that elsewhere mean a whole sequence (`input_ids`) or a response with tool results in it (`response_ids`) are left out
 * on purpose: read as prompt or sampled ids they would train what nobody sampled.
 */
export const SPELLINGS = {
  trajectory: ["trajectory_id", "session_id", "rollout_id", "conversation_id", "trial_name"],
  call: ["call_id", "request_id"],
  prompt: ["prompt_token_ids", "prompt_ids"],
  sampled: [
    "completion_token_ids",
    "sampled_ids",
    "token_ids",
    "output_token_ids",
    "output_ids",
    "completion_ids",
    "response_token_ids",
  ],
  logprobs: ["logprobs", "completion_logprobs", "sampled_logprobs", "output_logprobs", "response_logprobs"],
  message: ["message", "response_message", "assistant_message"],
  text: ["completion", "text", "response_text"],
  reply: ["response", "reply"],
  sampling: ["sampling", "sampling_params"],
  logprobMode: ["logprob_mode", "logprobs_mode"],
  version: ["weight_version", "policy_version"],
  received: ["received_ms", "received_at", "request_time", "started_at", "start_time", "timestamp"],
  sent: ["sent_ms", "sent_at"],
  firstToken: ["first_token_ms", "first_token_at"],
  finished: ["finished_ms", "finished_at", "end_time", "ended_at"],
} as const satisfies Record<string, readonly string[]>;

/** Fields with one spelling. */
const PLAIN_FIELDS = [
  "attempt",
  "choices",
  "created",
  "delivered",
  "dialect",
  "engine",
  "finish_reason",
  "group_id",
  "headers",
  "id",
  "lane",
  "messages",
  "metadata",
  "model",
  "object",
  "renderer_contract",
  "request",
  "retry_of",
  "run_id",
  "stop_reason",
  "tools",
  "trial_id",
  "usage",
  "weight_versions",
] as const;

/** Evidence that is there twice must be the same: which one was meant could only be guessed. */
const EVIDENCE: ReadonlySet<string> = new Set(["prompt", "sampled", "logprobs"]);

/** The value under the first spelling that is there; null counts as absent. @throws TitoError `format_invalid` when evidence disagrees. */
export function spelled(record: JsonRecord, field: keyof typeof SPELLINGS): unknown {
  const present = SPELLINGS[field].filter((name) => record[name] !== undefined && record[name] !== null);
  const [first, ...others] = present;
  if (first === undefined) return undefined;
  if (EVIDENCE.has(field) && others.length > 0) {
    const value = JSON.stringify(record[first]);
    const other = others.find((name) => JSON.stringify(record[name]) !== value);
    if (other !== undefined) throw new TitoError("format_invalid", `${first} and ${other} disagree`);
  }
  return record[first];
}

const KNOWN: ReadonlySet<string> = new Set([...Object.values(SPELLINGS).flat(), ...PLAIN_FIELDS]);

/** Fields of a record that nothing reads. */
export function unknownFields(record: JsonRecord): string[] {
  return Object.keys(record).filter((name) => !KNOWN.has(name));
}
