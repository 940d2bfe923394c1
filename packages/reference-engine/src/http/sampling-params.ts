import { z } from "zod";
import { badRequest } from "../errors.js";
import type { StopRules } from "../generate/stop-rules.js";
import type { Sampling } from "../policy/policy.js";

const count = z.number().int();
const tokenId = count.min(0);

/** The sampling fields that all generation endpoints share, under vLLM's names and limits. Null means: not given. */
export const samplingShape = {
  temperature: z.number().min(0, "temperature must be non-negative").max(100).nullish(),
  top_p: z.number().gt(0, "top_p must be in (0, 1]").max(1, "top_p must be in (0, 1]").nullish(),
  top_k: count.min(-1, "top_k must be 0 (disable), or at least 1").nullish(),
  min_p: z.number().min(0, "min_p must be in [0, 1]").max(1, "min_p must be in [0, 1]").nullish(),
  repetition_penalty: z.number().gt(0, "repetition_penalty must be greater than zero").max(100).nullish(),
  presence_penalty: z
    .number()
    .min(-2, "presence_penalty must be in [-2, 2]")
    .max(2, "presence_penalty must be in [-2, 2]")
    .nullish(),
  frequency_penalty: z
    .number()
    .min(-2, "frequency_penalty must be in [-2, 2]")
    .max(2, "frequency_penalty must be in [-2, 2]")
    .nullish(),
  seed: count.nullish(),
  n: count.min(1, "n must be at least 1").max(64, "n is at most 64 here").nullish(),
  stop: z.union([z.string(), z.array(z.string()).max(64)]).nullish(),
  stop_token_ids: z.array(tokenId).max(1024).nullish(),
  ignore_eos: z.boolean().nullish(),
  include_stop_str_in_output: z.boolean().nullish(),
  skip_special_tokens: z.boolean().nullish(),
  prompt_logprobs: count
    .min(0, "prompt_logprobs must be at least 0 here")
    .max(20, "prompt_logprobs is at most 20")
    .nullish(),
  /** Of this engine only: the temperature at which `prompt_logprobs` are computed. Default 1. */
  prompt_logprobs_temperature: z.number().gt(0).max(100).nullish(),
} as const;

const samplingSchema = z.object(samplingShape);
export type SamplingFields = z.infer<typeof samplingSchema>;

/** Fields of a request that would change what is sampled in a way this engine cannot do. Each is refused rather than ignored. */
const REFUSED: readonly { field: string; neutral: (value: unknown) => boolean }[] = [
  ...["logit_bias", "allowed_token_ids", "bad_words", "suffix", "truncate_prompt_tokens", "logprob_token_ids"].map(
    (field) => ({
      field,
      neutral: isNothing,
    }),
  ),
  ...[
    "guided_json",
    "guided_regex",
    "guided_choice",
    "guided_grammar",
    "structured_outputs",
    "thinking_token_budget",
  ].map((field) => ({
    field,
    neutral: isNothing,
  })),
  ...["echo", "use_beam_search", "continue_final_message", "prompt_embeds"].map((field) => ({
    field,
    neutral: (value: unknown) => isNothing(value) || value === false,
  })),
  { field: "min_tokens", neutral: (value) => isNothing(value) || value === 0 },
  { field: "best_of", neutral: (value) => isNothing(value) || value === 1 },
  { field: "response_format", neutral: (value) => isNothing(value) || typeOf(value) === "text" },
];

/** Throws 400 when the request uses a field that would be ignored otherwise; `allowed` are those that it may use. */
export function refuseUnsupported(body: ReadonlyMap<string, unknown>, allowed: readonly string[] = []): void {
  for (const { field, neutral } of REFUSED) {
    if (allowed.includes(field)) continue;
    if (!neutral(body.get(field))) throw badRequest(`${field} is not supported by the embedded engine`, field);
  }
}

/** vLLM's defaults: all neutral. */
export function samplingOf(fields: SamplingFields): Sampling {
  return {
    temperature: fields.temperature ?? 1,
    topP: fields.top_p ?? 1,
    topK: Math.max(0, fields.top_k ?? 0),
    minP: fields.min_p ?? 0,
    repetitionPenalty: fields.repetition_penalty ?? 1,
    presencePenalty: fields.presence_penalty ?? 0,
    frequencyPenalty: fields.frequency_penalty ?? 0,
    seed: fields.seed ?? null,
  };
}

/** All stop rules but the number of tokens, which depends on the prompt. */
export function stopRulesOf(fields: SamplingFields, eosIds: ReadonlySet<number>): Omit<StopRules, "maxTokens"> {
  const stop = typeof fields.stop === "string" ? [fields.stop] : (fields.stop ?? []);
  if (stop.includes("")) throw badRequest("stop cannot contain an empty string.", "stop");
  return {
    eosIds,
    ignoreEos: fields.ignore_eos ?? false,
    stopTokenIds: new Set(fields.stop_token_ids ?? []),
    stopStrings: stop,
    includeStopText: fields.include_stop_str_in_output ?? false,
  };
}

function isNothing(value: unknown): boolean {
  if (value === undefined || value === null || value === "") return true;
  return typeof value === "object" && Object.keys(value).length === 0;
}

function typeOf(value: unknown): unknown {
  return typeof value === "object" && value !== null && "type" in value ? value.type : undefined;
}
