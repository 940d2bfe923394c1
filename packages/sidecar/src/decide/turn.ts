/** A turn before it has its place: everything that the engine's reply and its request say, in the shape of the record. Pure. */

import {
  type FinishReason,
  type Message,
  promptDigest,
  type ToolDefinition,
  type TurnRecord,
  type VersionSpan,
} from "@tito/format";
import { callsNothing, isMalformed } from "../dialect/message.js";
import { toolsDigest } from "../dialect/tools-digest.js";
import type { Sampled } from "../sample/sampled.js";
import type { UnplacedTurn } from "./decide.js";

/** What a turn is made of that the reply's evidence does not say. */
export type TurnFacts = Pick<
  TurnRecord,
  | "call_id"
  | "lane"
  | "lane_evidence"
  | "dialect"
  | "stream"
  | "stream_reason"
  | "sampling"
  | "logprob_mode"
  | "prompt_mode"
  | "weight_versions"
  | "engine"
  | "renderer_contract"
  | "junction"
  | "special_text_escaped"
  | "times"
> & {
  tools: readonly ToolDefinition[];
  message: Message;
  /** What the parser said; null or absent: the message tells. */
  malformed?: boolean | null;
};

export type WholeSampled = Sampled & { promptIds: Int32Array };

export function unplacedTurn(facts: TurnFacts, sampled: WholeSampled): UnplacedTurn {
  const { tools, malformed, ...known } = facts;
  return {
    ...known,
    tools_sha256: toolsDigest(tools),
    prompt_sha256: promptDigest(sampled.promptIds),
    sampled_ids: sampled.ids,
    logprobs: sampled.logprobs,
    logprob_gaps: sampled.gaps,
    finish_reason: finishReason(sampled, (facts.message.tool_calls?.length ?? 0) > 0),
    stop_reason: sampled.stopReason,
    ...engineFinish(sampled),
    defects: sampled.defects,
    usage: {
      prompt_tokens: sampled.usage.prompt,
      completion_tokens: sampled.usage.completion,
      cached_tokens: sampled.usage.cached,
    },
    malformed: (malformed ?? isMalformed(facts.message)) || callsNothing(facts.message),
    upstream_request_id: sampled.upstreamId,
  };
}

/** Finish reasons that have a place of their own in the record. */
const KNOWN_FINISHES: ReadonlySet<string> = new Set([
  "stop",
  "length",
  "tool_calls",
  "function_call",
  "abort",
  "error",
]);

/** What an engine says of an answer's end in words of its own is evidence, as it stands. */
function engineFinish({ finish }: Sampled): Pick<TurnRecord, "engine_finish"> {
  return finish === null || KNOWN_FINISHES.has(finish) ? {} : { engine_finish: finish.slice(0, 200) };
}

function finishReason(sampled: Sampled, hasCalls: boolean): FinishReason {
  switch (sampled.finish) {
    case "length":
    case "abort":
    case "error":
      return sampled.finish;
    case "stop":
    case "tool_calls":
    case "function_call":
      return hasCalls ? "tool_calls" : "stop";
    default:
      if (sampled.defects.includes("client_gone") || sampled.defects.includes("aborted_by_seal")) return "abort";
      return sampled.defects.includes("engine_error") ? "error" : "unknown";
  }
}

/** The weight versions that the reply itself tells; null when they do not cover its sampled ids. */
export function toldVersions(sampled: Sampled): VersionSpan[] | null {
  const { versions, ids } = sampled;
  const covers =
    versions.length > 0 &&
    versions.at(-1)!.end === ids.length &&
    versions.every((span, index) => span.start === (versions[index - 1]?.end ?? 0) && span.end > span.start);
  return covers ? versions : null;
}
