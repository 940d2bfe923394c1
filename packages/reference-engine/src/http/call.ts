import type { ChoiceRecord, Step } from "../generate/loop.js";
import type { StopRules } from "../generate/stop-rules.js";
import type { Draw, Sampler, Sampling } from "../policy/policy.js";
import type { EncodedPrompt } from "../render/prompt.js";
import type { TokenView } from "./token-view.js";

/** One request for tokens, read from whichever endpoint it came by. */
export interface GenerationCall {
  /** Null: the request named no model, which vLLM accepts. */
  model: string | null;
  prompts: EncodedPrompt[];
  /** Choices a prompt. */
  n: number;
  sampling: Sampling;
  stop: Omit<StopRules, "maxTokens">;
  /** Null: `defaultMaxTokens`. */
  maxTokens: number | null;
  /** Null: what the context leaves. */
  defaultMaxTokens: number | null;
  skipSpecialTokens: boolean;
  /** How many alternatives a token; null when log probabilities were not asked for. */
  topCount: number | null;
  promptLogprobs: { topCount: number; temperature: number } | null;
  /** Names tokens `token_id:N` instead of by their text. */
  tokensAsIds: boolean;
  returnTokenIds: boolean;
  /** Null: one whole reply. */
  stream: { includeUsage: boolean; continuousUsage: boolean } | null;
  /** Builds the endpoint's own shapes. */
  format(context: FormatContext): ReplyFormat;
}

/** One choice under way. */
export interface Choice {
  index: number;
  prompt: EncodedPrompt;
  /** How often this prompt was seen, this one included. */
  occurrence: number;
  sampler: Sampler;
  stop: StopRules;
  record: ChoiceRecord;
  /** What `prompt_logprobs` gave, for all positions but the first. */
  promptScores: Draw[] | null;
}

export interface Usage {
  prompt_tokens: number;
  total_tokens: number;
  completion_tokens: number;
  prompt_tokens_details?: { cached_tokens: number } | null;
}

/** What a format needs to know besides the tokens. */
export interface FormatContext {
  requestId: string;
  /** Seconds since 1970. */
  created: number;
  model: string;
  choices: Choice[];
  tokens: TokenView;
  /** Fields of this engine that tell the weight version; empty until one was set. */
  weightFields(choice: Choice): { weight_version?: string; weight_versions?: unknown };
}

/** The shapes of one endpoint. Stateful: it is fed every step of every choice, in order. */
export interface ReplyFormat {
  /** Chunks before the first token of a choice. */
  head(choice: Choice): object[];
  /** Takes a step in; gives the chunks to stream for it. */
  step(choice: Choice, step: Step): object[];
  /** The chunk with the usage. */
  usage(usage: object): object;
  /** The whole reply, after all steps were taken in. */
  whole(usage: Usage): object;
}
