import { z } from "zod";
import type { Engine } from "../engine.js";
import { badRequest } from "../errors.js";
import { renderChat } from "../render/prompt.js";
import type { GenerationCall } from "./call.js";
import { createChatFormat } from "./chat-format.js";
import { type JsonBody, parseWith } from "./json-body.js";
import { refuseUnsupported, samplingOf, samplingShape, stopRulesOf } from "./sampling-params.js";

const requestSchema = z.object({
  ...samplingShape,
  model: z.string().nullish(),
  max_tokens: z.number().int().min(1, "max_tokens must be at least 1").nullish(),
  max_completion_tokens: z.number().int().min(1, "max_completion_tokens must be at least 1").nullish(),
  logprobs: z.boolean().nullish(),
  top_logprobs: z.number().int().min(0, "`top_logprobs` must be a positive value.").nullish(),
  return_token_ids: z.boolean().nullish(),
  return_tokens_as_token_ids: z.boolean().nullish(),
  stream: z.boolean().nullish(),
  stream_options: z
    .object({ include_usage: z.boolean().nullish(), continuous_usage_stats: z.boolean().nullish() })
    .nullish(),
  tools: z.array(z.unknown()).nullish(),
  tool_choice: z.union([z.string(), z.object({ type: z.string() })]).nullish(),
  add_generation_prompt: z.boolean().nullish(),
  chat_template_kwargs: z.record(z.string(), z.unknown()).nullish(),
  reasoning_effort: z.string().nullish(),
});

type ChatRequest = z.infer<typeof requestSchema>;

/** `POST /v1/chat/completions`: reads the request and renders its prompt. */
export function readChatCall(engine: Engine, body: JsonBody): GenerationCall {
  const request = parseWith(requestSchema, body);
  // A script decides by itself what the answer looks like.
  refuseUnsupported(body.fields, engine.weights.current.policy.name === "script" ? ["response_format"] : []);
  const readsToolCalls = (request.tools ?? []).length > 0 && request.tool_choice !== "none";
  refuseForcedCalls(engine, request);
  const topCount = request.logprobs === true ? (request.top_logprobs ?? 0) : null;
  if (topCount === null && (request.top_logprobs ?? 0) > 0) {
    throw badRequest("when using `top_logprobs`, `logprobs` must be set to true.", "top_logprobs");
  }
  const prompt = renderChat(engine.vocabulary, engine.template, {
    rawBody: body.text,
    addGenerationPrompt: request.add_generation_prompt ?? true,
    variables: templateVariables(request.chat_template_kwargs, request.reasoning_effort),
    names: engine.directory,
  });
  return {
    model: request.model ?? null,
    prompts: [prompt],
    n: request.n ?? 1,
    sampling: samplingOf(request),
    stop: stopRulesOf(request, engine.directory.eosIds),
    maxTokens: request.max_completion_tokens ?? request.max_tokens ?? null,
    defaultMaxTokens: null,
    skipSpecialTokens: request.skip_special_tokens ?? true,
    topCount,
    promptLogprobs: promptLogprobsOf(request),
    tokensAsIds: request.return_tokens_as_token_ids ?? false,
    returnTokenIds: request.return_token_ids ?? false,
    stream: streamOf(request),
    format: (context) => createChatFormat(context, { readsToolCalls, vocabulary: engine.vocabulary }),
  };
}

/** What the template sees besides messages and tools. An effort also switches thinking on or off unless the request says so itself. */
export function templateVariables(
  kwargs: Record<string, unknown> | null | undefined,
  effort: string | null | undefined,
): Map<string, unknown> {
  const fromEffort: [string, unknown][] =
    effort == null
      ? []
      : [
          ["reasoning_effort", effort],
          ["enable_thinking", effort !== "none"],
        ];
  return new Map([...fromEffort, ...Object.entries(kwargs ?? {})]);
}

/** Shared by the endpoints that can score their prompt. */
export function promptLogprobsOf(request: {
  prompt_logprobs?: number | null | undefined;
  prompt_logprobs_temperature?: number | null | undefined;
  stream?: boolean | null | undefined;
}): GenerationCall["promptLogprobs"] {
  if (request.prompt_logprobs == null) return null;
  if (request.stream === true) {
    throw badRequest("`prompt_logprobs` are not available when `stream=True`.", "prompt_logprobs");
  }
  return { topCount: request.prompt_logprobs, temperature: request.prompt_logprobs_temperature ?? 1 };
}

/** Shared by the endpoints that stream in OpenAI's manner. */
export function streamOf(request: Pick<ChatRequest, "stream" | "stream_options">): GenerationCall["stream"] {
  if (request.stream !== true) {
    if (request.stream_options != null) {
      throw badRequest("Stream options can only be defined when `stream=True`.", "stream_options");
    }
    return null;
  }
  return {
    includeUsage: request.stream_options?.include_usage ?? false,
    continuousUsage: request.stream_options?.continuous_usage_stats ?? false,
  };
}

/** A call cannot be forced on the model: that needs constrained decoding. A script decides by itself. */
function refuseForcedCalls(engine: Engine, request: ChatRequest): void {
  const choice = request.tool_choice;
  if (choice == null || choice === "auto" || choice === "none" || engine.weights.current.policy.name === "script")
    return;
  throw badRequest("tool_choice other than auto or none is not supported by the embedded engine", "tool_choice");
}
