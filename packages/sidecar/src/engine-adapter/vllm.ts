/**
 * vLLM, and everything that speaks its wire shapes (the embedded engine does). Prompt ids go to `/inference/v1/generate` where the server has it and stamps
 * each reply with the weight versions that sampled it (0.32 with `--enable-scale-out`), else to `/v1/completions`.
 */
import { asArray, asCount, asObject } from "../json/narrow.js";
import { readEngineChunk } from "../sample/engine-chunk.js";
import type { SentCall } from "../sample/sent-call.js";
import { countPromptTokens } from "../sample/token-count.js";
import type { Upstream } from "../sample/upstream.js";
import type { EngineAdapter, EngineTarget, IdsCall } from "./adapter.js";
import { asIds, detokenize, infoField, postJson } from "./info-route.js";
import { likeliestFirst, openAiReader } from "./openai-reply.js";
import {
  generates,
  VLLM_CHAT_PATH,
  VLLM_COMPLETIONS_PATH,
  VLLM_GENERATE_PATH,
  vllmChatBody,
  vllmCompletionBody,
  vllmGenerateBody,
} from "./vllm-body.js";

/** The engine as it is found: with the token route only where its replies carry all that is recorded. */
export async function openVllm({ upstream, model }: EngineTarget): Promise<EngineAdapter> {
  return vllm(await hasTokenRoute(upstream, model));
}

export function vllm(tokenRoute: boolean): EngineAdapter {
  return {
    kind: "vllm",
    canStream: true,
    chat: ({ chatBody, ...fields }) => ({
      path: VLLM_CHAT_PATH,
      body: vllmChatBody(chatBody, fields),
      reader: openAiReader,
    }),
    ids: (call) => (tokenRoute && generates(call.request) ? byTokens(call) : byCompletion(call)),
    likeliest: likeliestFirst,
    logprobMode: () => null,
    version: (upstream) => infoField(upstream, ["/version"], "version"),
    weightVersion: (upstream) => infoField(upstream, ["/weight_info"], "weight_version"),
    contextTokens: async ({ modelEntry }) => asCount(asObject(JSON.parse(modelEntry))?.max_model_len),
    tokenizeChat,
    countTokens: countPromptTokens,
    textOf: (upstream, model, ids) => detokenize(upstream, { model, tokens: Array.from(ids) }, "prompt"),
    headers: () => ({}),
  };
}

const byTokens = (call: IdsCall): SentCall => ({
  path: VLLM_GENERATE_PATH,
  body: vllmGenerateBody(call.request, call),
  // The route names a reply by `request_id` and nothing else.
  reader: () => (json) => {
    const chunk = readEngineChunk(json);
    const id = asObject(json)?.request_id;
    return { ...chunk, id: chunk.id ?? (typeof id === "string" ? `cmpl-${id}` : null) };
  },
});

const byCompletion = (call: IdsCall): SentCall => ({
  path: VLLM_COMPLETIONS_PATH,
  body: vllmCompletionBody(call.request, call),
  reader: openAiReader,
});

/** One token is sampled behind one id; a server without the route refuses, an older one leaves members out. */
async function hasTokenRoute(upstream: Upstream, model: string): Promise<boolean> {
  const request = { sampling: { temperature: 1, seed: 1 }, stop: [] };
  const call = {
    model,
    promptIds: Int32Array.of(0),
    maxTokens: 1,
    stream: false,
    sampling: new Map(),
    stopTokenIds: [],
  };
  const json = await postJson(upstream, VLLM_GENERATE_PATH, vllmGenerateBody(request, call));
  const chunk = readEngineChunk(json);
  const choice = asObject(asArray(asObject(json)?.choices)?.[0]);
  const content = asArray(asObject(choice?.logprobs)?.content);
  return (
    chunk.promptIds !== null &&
    chunk.sampled?.ids.length === 1 &&
    asObject(content?.[0])?.token_id === chunk.sampled.ids[0] &&
    chunk.usage?.completion === 1 &&
    // Older servers never say which stop string matched.
    choice?.stop_reason === null &&
    chunk.versions !== null
  );
}

async function tokenizeChat(upstream: Upstream, model: string, chat: Record<string, unknown>) {
  const body = JSON.stringify({ model, ...chat, add_generation_prompt: true, add_special_tokens: false });
  return asIds(asObject(await postJson(upstream, "/tokenize", body))?.tokens);
}
