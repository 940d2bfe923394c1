/**
 * SGLang: its own `/generate` route for prompt ids, its chat route where the engine renders. From documented wire shapes.
 * Log probabilities follow the temperature but are not renormalised over what top_k, top_p and min_p keep.
 */
import type { LogprobMode } from "@tito/format";
import { asArray, asCount, asObject, asString } from "../json/narrow.js";
import {
  asVersion,
  type EngineChunk,
  readEngineChunk,
  readIds,
  readLogprob,
  readPromptIds,
} from "../sample/engine-chunk.js";
import type { ChunkReader, SentCall } from "../sample/sent-call.js";
import type { Upstream } from "../sample/upstream.js";
import type { ChatCall, EngineAdapter } from "./adapter.js";
import { asIds, detokenize, infoField, postJson } from "./info-route.js";
import { highest, likeliestFirst } from "./openai-reply.js";
import { SGLANG_GENERATE_PATH, sglangBody } from "./sglang-body.js";
import { sglangReader } from "./sglang-reply.js";
import { VLLM_CHAT_PATH, vllmChatBody } from "./vllm-body.js";

export const sglang: EngineAdapter = {
  kind: "sglang",
  canStream: true,
  chat: chatCall,
  ids: (call) => ({
    path: SGLANG_GENERATE_PATH,
    body: sglangBody(call),
    reader: () => sglangReader(call.promptIds),
  }),
  likeliest: (json) => {
    const meta = asObject(asObject(json)?.meta_info);
    const listed = asArray(asArray(meta?.output_top_logprobs)?.[0]) ?? [];
    return highest(listed.map((tuple) => asArray(tuple)?.[0])) ?? likeliestFirst(json);
  },
  logprobMode: () => null,
  logprobModeOf,
  version: (upstream) => infoField(upstream, ["/server_info", "/get_server_info"], "version"),
  weightVersion: (upstream) => infoField(upstream, ["/model_info", "/get_model_info"], "weight_version"),
  contextTokens: async ({ modelEntry }) => asCount(asObject(JSON.parse(modelEntry))?.max_model_len),
  tokenizeChat,
  countTokens: null,
  textOf: (upstream, model, ids) =>
    detokenize(upstream, { model, tokens: Array.from(ids), skip_special_tokens: false }, "text"),
  headers: () => ({}),
};

/** The fields of all three generations of its chat route: each server knows one and leaves the others alone; one refuses them in a stream. */
function chatCall({ chatBody, ...fields }: ChatCall): SentCall {
  const body = vllmChatBody(chatBody, fields);
  const asked = fields.stream ? {} : { return_prompt_token_ids: true, return_meta_info: true };
  const more = JSON.stringify({ ...asked, return_input_ids: true, return_output_ids: true }).slice(1, -1);
  return { path: VLLM_CHAT_PATH, body: `${body.slice(0, -1)},${more}}`, reader: chatReader };
}

/** Ids beside the choice, in `meta_info`, or once for the whole reply in `sglext`, which in a stream comes last. */
function chatReader(): ChunkReader {
  return (json) => {
    const chunk = readEngineChunk(json);
    const top = asObject(json) ?? {};
    const choice = asObject(asArray(top.choices)?.[0]) ?? {};
    const meta = asObject(choice.meta_info) ?? asObject(top.meta_info);
    const extra = asObject(top.sglext);
    const tuples = asArray(meta?.output_token_logprobs);
    return {
      ...chunk,
      promptIds: chunk.promptIds ?? readPromptIds(meta?.prompt_token_ids) ?? readPromptIds(extra?.input_ids),
      sampled: chunk.sampled ?? idsOf(tuples) ?? readIds(asArray(extra?.output_ids)?.[0]),
      logprobs: tuples === null ? chunk.logprobs : tuples.map((tuple) => readLogprob(asArray(tuple)?.[0])),
      version: chunk.version ?? asVersion(meta?.weight_version),
      stopReason: chunk.stopReason ?? asString(choice.matched_stop) ?? asCount(choice.matched_stop),
    };
  };
}

const idsOf = (tuples: readonly unknown[] | null): EngineChunk["sampled"] =>
  tuples === null ? null : readIds(tuples.map((tuple) => asArray(tuple)?.[1]));

/** Behaviour values as long as nothing is filtered, which cannot be known where the server fills in a filter that nobody named. */
function logprobModeOf(mode: LogprobMode, sampling: Readonly<Record<string, unknown>>): LogprobMode {
  const { top_p, top_k, min_p } = sampling;
  const filtered = (value: unknown, ...off: number[]) => value !== undefined && !off.includes(value as number);
  if (filtered(top_p, 1) || filtered(top_k, -1, 0) || filtered(min_p, 0)) return "raw";
  return top_p === undefined || top_k === undefined || min_p === undefined ? "unknown" : mode;
}

async function tokenizeChat(upstream: Upstream, model: string, chat: Record<string, unknown>) {
  const body = JSON.stringify({ model, ...chat, add_special_tokens: false });
  return asIds(asObject(await postJson(upstream, "/tokenize", body))?.tokens);
}
