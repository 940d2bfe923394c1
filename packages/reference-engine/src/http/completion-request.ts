import { z } from "zod";
import type { Engine } from "../engine.js";
import { type EncodedPrompt, promptOfIds, promptOfText } from "../render/prompt.js";
import type { GenerationCall } from "./call.js";
import { promptLogprobsOf, streamOf } from "./chat-request.js";
import { createCompletionFormat } from "./completion-format.js";
import { type JsonBody, parseWith } from "./json-body.js";
import { refuseUnsupported, samplingOf, samplingShape, stopRulesOf } from "./sampling-params.js";

const PROMPTS_MAX = 256;
/** vLLM's own default on this endpoint. */
const DEFAULT_MAX_TOKENS = 16;

const ids = z.array(z.number().int().min(0, "token ids must be at least 0"));

const requestSchema = z.object({
  ...samplingShape,
  model: z.string().nullish(),
  prompt: z.union([z.string(), ids, z.array(z.string()).max(PROMPTS_MAX), z.array(ids).max(PROMPTS_MAX)]),
  max_tokens: z.number().int().min(1, "max_tokens must be at least 1").nullish(),
  logprobs: z
    .number()
    .int()
    .min(0, "`logprobs` must be a non-negative value")
    .max(20, "Requested sample logprobs are greater than max allowed: 20")
    .nullish(),
  return_token_ids: z.boolean().nullish(),
  return_tokens_as_token_ids: z.boolean().nullish(),
  stream: z.boolean().nullish(),
  stream_options: z
    .object({ include_usage: z.boolean().nullish(), continuous_usage_stats: z.boolean().nullish() })
    .nullish(),
});

/** `POST /v1/completions`: a prompt, or several, as text or as ids. */
export function readCompletionCall(engine: Engine, body: JsonBody): GenerationCall {
  const request = parseWith(requestSchema, body);
  refuseUnsupported(body.fields);
  return {
    model: request.model ?? null,
    prompts: promptsOf(engine, request.prompt),
    n: request.n ?? 1,
    sampling: samplingOf(request),
    stop: stopRulesOf(request, engine.directory.eosIds),
    maxTokens: request.max_tokens ?? null,
    defaultMaxTokens: DEFAULT_MAX_TOKENS,
    skipSpecialTokens: request.skip_special_tokens ?? true,
    topCount: request.logprobs ?? null,
    promptLogprobs: promptLogprobsOf(request),
    tokensAsIds: request.return_tokens_as_token_ids ?? false,
    returnTokenIds: request.return_token_ids ?? false,
    stream: streamOf(request),
    format: createCompletionFormat,
  };
}

/** A list of numbers is one prompt, a list of anything else a batch. */
function promptsOf(engine: Engine, prompt: z.infer<typeof requestSchema>["prompt"]): EncodedPrompt[] {
  const batch = typeof prompt === "string" || typeof prompt[0] === "number" || prompt.length === 0 ? [prompt] : prompt;
  return batch.map((one) =>
    typeof one === "string"
      ? promptOfText(engine.vocabulary, one)
      : promptOfIds(engine.vocabulary, one as readonly number[]),
  );
}
