/**
 * llama.cpp's server, by its own `/completion` route: ids in, ids and probabilities out. Never streamed: while a character is spread over several tokens its stream leaves
 * all but the last of them out. A whole reply has every id; a value that it leaves out is a gap.
 * Its chat route gives no prompt ids, so that it works with a renderer only.
 */
import { TitoError } from "@tito/format";
import { asArray, asCount, asObject, asString } from "../json/narrow.js";
import {
  type EngineChunk,
  type LogprobEntry,
  NO_CHUNK,
  readError,
  readIds,
  readLogprob,
} from "../sample/engine-chunk.js";
import type { Upstream } from "../sample/upstream.js";
import type { EngineAdapter, EngineTarget, IdsCall } from "./adapter.js";
import { asIds, getJson, infoField, postJson } from "./info-route.js";
import { LLAMACPP_COMPLETION_PATH, llamacppBody } from "./llamacpp-body.js";
import { placeById } from "./place-by-id.js";

/** The engine as it is found: asked to parse nothing, where it takes that. */
export async function openLlamacpp({ upstream, model }: EngineTarget): Promise<EngineAdapter> {
  const body = llamacppBody({ ...ONE_TOKEN, model }, { parserless: true });
  const reply = readLlamacppReply(await postJson(upstream, LLAMACPP_COMPLETION_PATH, body), ONE_TOKEN.promptIds);
  return llamacpp(reply.sampled !== null);
}

const ONE_TOKEN: IdsCall = {
  model: "",
  promptIds: Int32Array.of(0),
  maxTokens: 1,
  stream: false,
  sampling: new Map([
    ["temperature", "1"],
    ["seed", "1"],
  ]),
  stopTokenIds: [],
  request: { sampling: {}, stop: [] },
};

export const llamacpp = (parserless: boolean): EngineAdapter => ({
  kind: "llamacpp",
  canStream: false,
  chat: null,
  ids: (call) => ({
    path: LLAMACPP_COMPLETION_PATH,
    body: llamacppBody(call, { parserless }),
    reader: () => (json) => readLlamacppReply(json, call.promptIds),
  }),
  likeliest: () => null,
  // A server that knows no probabilities behind the chain sends those before it, under another name.
  logprobMode: (replies) => (replies.every(isBehindChain) ? "processed" : "raw"),
  version: (upstream) => infoField(upstream, ["/props"], "build_info"),
  weightVersion: async () => null,
  contextTokens: async ({ upstream }) => {
    const props = asObject(await getJson(upstream, "/props"));
    return asCount(asObject(props?.default_generation_settings)?.n_ctx);
  },
  tokenizeChat,
  countTokens: null,
  headers: () => ({}),
  checkStops,
});

/** A whole reply; `sent` are the ids that the engine was given, which it counts but does not repeat. */
export function readLlamacppReply(json: unknown, sent: Int32Array): EngineChunk {
  const top = asObject(json) ?? {};
  const error = readError(top.error);
  if (error !== null) return { ...NO_CHUNK, error };
  const sampled = readIds(top.tokens);
  const counted = asCount(top.tokens_evaluated);
  const timings = asObject(top.timings);
  return {
    ...NO_CHUNK,
    model: asString(top.model),
    promptIds: counted === null ? null : sent,
    sampled,
    logprobs: readLogprobs(top, sampled?.ids ?? []),
    hasOutput: (asString(top.content) ?? "") !== "",
    finish: readFinish(top),
    stopReason: top.stop_type === "word" ? asString(top.stopping_word) : null,
    usage: {
      prompt: counted,
      completion: asCount(top.tokens_predicted),
      cached: asCount(timings?.cache_n),
      reasoning: null,
    },
  };
}

/** A context shift drops prompt ids in the middle of an answer: what was sampled after it was sampled from something else. */
function readFinish(top: { readonly [key: string]: unknown }): string | null {
  if (top.stop !== true) return null;
  if (top.truncated === true && top.stop_type !== "limit") return "error";
  switch (top.stop_type) {
    case "eos":
    case "word":
      return "stop";
    case "limit":
      return "length";
    default:
      return null;
  }
}

const probabilities = (json: unknown): readonly unknown[] | null => asArray(asObject(json)?.completion_probabilities);

/** One entry for each id, and a gap for each that the engine left out (half characters, the tail of a stop string). */
function readLogprobs(top: unknown, ids: readonly number[]): LogprobEntry[] | null {
  const entries = probabilities(top)?.map(asObject);
  if (entries === undefined) return null;
  const placed = placeById(
    ids,
    entries.map((entry) => asCount(entry?.id)),
  );
  if (placed === null) return entries.map(readProbability);
  return placed.map((at) => (at === null ? { was: "left out by the engine" } : readProbability(entries[at]!)));
}

/**
 * `prob` after the sampler chain, or `logprob` before it where a server knows no other. Tokens that a draft model proposed come with a made-up 1
 * and without alternatives: they have none.
 */
function readProbability(entry: { readonly [key: string]: unknown } | null): LogprobEntry {
  const alternatives = asArray(entry?.top_probs) ?? asArray(entry?.top_logprobs);
  if (alternatives?.length === 0) return { was: "no alternatives: not the model's own" };
  const { prob, logprob } = entry ?? {};
  if (typeof prob === "number" && prob > 0) return readLogprob(Math.fround(Math.log(prob)));
  if (typeof logprob === "number" && logprob > LOWEST) return logprob > 0 ? readLogprob(logprob) : { value: logprob };
  return { was: String(prob ?? logprob ?? "missing").slice(0, 40) };
}

const isBehindChain = (json: unknown): boolean =>
  (probabilities(json) ?? []).every((entry) => typeof asObject(entry)?.prob === "number");

/** It prints the lowest float where a probability is 0. */
const LOWEST = -3e38;

/** Its template engine, then its tokenizer. Only for comparing: what is sent are the renderer's ids. */
async function tokenizeChat(upstream: Upstream, _model: string, chat: Record<string, unknown>) {
  const text = asString(asObject(await postJson(upstream, "/apply-template", JSON.stringify(chat)))?.prompt);
  if (text === null) return null;
  const body = JSON.stringify({ content: text, add_special: false, parse_special: true });
  return asIds(asObject(await postJson(upstream, "/tokenize", body))?.tokens);
}

/** The route takes no stop ids. Each id that ends a turn is made certain once, to see that the engine ends there. */
async function checkStops({ upstream, model }: EngineTarget, stopTokenIds: readonly number[]): Promise<void> {
  for (const id of stopTokenIds) {
    const constraints = new Map([["logit_bias", `[[${id},10000]]`]]);
    const request = { sampling: {}, stop: [], constraints };
    const call = { ...ONE_TOKEN, model, promptIds: Int32Array.of(id), maxTokens: 2, request };
    const body = llamacppBody(call, { parserless: false });
    const json = asObject(await postJson(upstream, LLAMACPP_COMPLETION_PATH, body));
    const ids = asIds(json?.tokens);
    if (json?.stop_type === "eos" && ids?.length === 1 && ids[0] === id) continue;
    throw new TitoError("upstream_rejected", `the engine does not end at id ${id}, which ends a turn in the bundle`, {
      hint: "set the model file's end-of-turn ids (tokenizer.ggml.eot_token_id, tokenizer.ggml.eom_token_id): llama.cpp takes none with a request",
    });
  }
}
