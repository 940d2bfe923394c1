import { z } from "zod";
import type { Engine } from "../engine.js";
import { promptOfIds } from "../render/prompt.js";
import type { GenerationCall } from "./call.js";
import { promptLogprobsOf } from "./chat-request.js";
import { createGenerateFormat } from "./generate-format.js";
import { type JsonBody, parseWith } from "./json-body.js";
import { refuseUnsupported, samplingOf, samplingShape, stopRulesOf } from "./sampling-params.js";

const paramsSchema = z.object({
  ...samplingShape,
  max_tokens: z.number().int().min(1, "max_tokens must be at least 1").nullish(),
  logprobs: z.number().int().min(0).max(20, "Requested sample logprobs are greater than max allowed: 20").nullish(),
});

const requestSchema = z.object({
  model: z.string().nullish(),
  token_ids: z.array(z.number().int().min(0, "token ids must be at least 0")),
  sampling_params: paramsSchema,
  stream: z.boolean().nullish(),
  return_token_ids: z.boolean().nullish(),
  output_mode: z.literal("tokens", "only output_mode tokens is supported by the embedded engine").nullish(),
});

/** `POST /inference/v1/generate`: ids in, ids out, in the newer of vLLM's two shapes. */
export function readGenerateCall(engine: Engine, body: JsonBody): GenerationCall {
  const request = parseWith(requestSchema, body);
  const params = request.sampling_params;
  const given = body.fields.get("sampling_params");
  refuseUnsupported(new Map(Object.entries(given as object)));
  return {
    model: request.model ?? null,
    prompts: [promptOfIds(engine.vocabulary, request.token_ids)],
    n: params.n ?? 1,
    sampling: samplingOf(params),
    stop: stopRulesOf(params, engine.directory.eosIds),
    maxTokens: params.max_tokens ?? null,
    defaultMaxTokens: null,
    skipSpecialTokens: params.skip_special_tokens ?? true,
    topCount: params.logprobs ?? null,
    promptLogprobs: promptLogprobsOf({ ...params, stream: request.stream }),
    tokensAsIds: true,
    returnTokenIds: true,
    stream: request.stream === true ? { includeUsage: false, continuousUsage: false } : null,
    format: (context) => createGenerateFormat(context, { returnPromptIds: request.return_token_ids ?? false }),
  };
}
