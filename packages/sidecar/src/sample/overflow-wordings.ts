/**
 * How engines say that a prompt, or a prompt and its answer, do not fit the context window. It is a plain refusal and only its words tell, so that
 * each engine version's words are listed here: a harness compacts on an overflow and gives up on any other refusal.
 */

export interface OverflowWording {
  /** Who says it, and in which versions it was seen. */
  source: string;
  /** Groups that may be there: `prompt` and `limit` in tokens, `output` the tokens that were asked for. */
  pattern: RegExp;
  /** One such message; tests read it in every dialect. */
  example: string;
  /** The numbers of the example. */
  told: OverflowNumbers;
}

export interface OverflowNumbers {
  promptTokens: number | null;
  maxTokens: number | null;
  outputTokens: number | null;
}

const told = (promptTokens: number | null, maxTokens: number | null, outputTokens: number | null = null) => ({
  promptTokens,
  maxTokens,
  outputTokens,
});

/** The first that matches decides: wordings with more numbers come before those that hold a part of them. */
export const OVERFLOW_WORDINGS: readonly OverflowWording[] = [
  {
    source: "vLLM 0.17–0.32",
    pattern:
      /maximum context length is (?<limit>\d+) tokens\. However, you requested (?<output>\d+) output tokens and your prompt contains (?:at least )?(?<prompt>\d+)/i,
    example:
      "This model's maximum context length is 32768 tokens. However, you requested 8192 output tokens and your prompt contains at least 30000 input tokens, for a total of at least 38192 tokens. Please reduce the length of the input prompt or the number of requested output tokens.",
    told: told(30_000, 32_768, 8192),
  },
  {
    source: "vLLM 0.9–0.15",
    pattern:
      /max_(?:completion_)?tokens'? is too large: (?<output>\d+)\. This model's maximum context length is (?<limit>\d+) tokens and your request has (?<prompt>\d+) input tokens/i,
    example:
      "'max_tokens' or 'max_completion_tokens' is too large: 8000. This model's maximum context length is 4096 tokens and your request has 2778 input tokens (8000 > 4096 - 2778).",
    told: told(2778, 4096, 8000),
  },
  {
    source: "vLLM 0.2–0.8, SGLang's and OpenAI's older servers",
    pattern:
      /maximum context length is (?<limit>\d+) tokens\. However, you requested \d+ tokens \((?<prompt>\d+) in (?:the|your) (?:messages|prompt)[^,;]*[,;] (?<output>\d+) (?:in|for) the completion/i,
    example:
      "This model's maximum context length is 8192 tokens. However, you requested 8203 tokens (7691 in the messages, 512 in the completion). Please reduce the length of the messages or completion.",
    told: told(7691, 8192, 512),
  },
  {
    source: "vLLM 0.10–0.15",
    pattern: /maximum context length is (?<limit>\d+) tokens\. However, your request has (?<prompt>\d+) input tokens/i,
    example:
      "This model's maximum context length is 3000 tokens. However, your request has 12009 input tokens. Please reduce the length of the input messages.",
    told: told(12_009, 3000),
  },
  {
    source: "vLLM 0.2–0.9 (completions), OpenAI, this sidecar",
    pattern:
      /maximum context length is (?<limit>\d+) tokens\. However, (?:your messages resulted in|you requested) (?<prompt>\d+) tokens/i,
    example:
      "This model's maximum context length is 4097 tokens. However, your messages resulted in 4159 tokens. Please reduce the length of the messages.",
    told: told(4159, 4097),
  },
  {
    source: "vLLM 0.16–0.30 (renderer)",
    pattern:
      /passed (?<prompt>\d+) input tokens and requested (?<output>\d+) output tokens\. However, the model's context length is only (?<limit>\d+)/i,
    example:
      "You passed 9000 input tokens and requested 512 output tokens. However, the model's context length is only 8192 tokens, resulting in a maximum input length of 7680 tokens. Please reduce the length of the input prompt.",
    told: told(9000, 8192, 512),
  },
  {
    source: "vLLM 0.16–0.30 (before tokenizing: it counts characters)",
    pattern:
      /passed \d+ input characters and requested (?<output>\d+) output tokens\. However, the model's context length is only (?<limit>\d+)/i,
    example:
      "You passed 900000 input characters and requested 512 output tokens. However, the model's context length is only 8192 tokens, resulting in a maximum input length of 7680 tokens (at most 98304 characters). Please reduce the length of the input prompt.",
    told: told(null, 8192, 512),
  },
  {
    source: "vLLM 0.5–0.32 (engine)",
    pattern:
      /prompt \(length (?<prompt>\d+)\)(?: plus the number of requested output tokens \(at least \d+\))? (?:is longer than|exceeds) the maximum model length of (?<limit>\d+)/i,
    example:
      "The decoder prompt (length 8192) plus the number of requested output tokens (at least 1) is longer than the maximum model length of 8192. Make sure that `max_model_len` is no smaller than the number of text tokens (prompt + requested output tokens).",
    told: told(8192, 8192),
  },
  {
    source: "vLLM 0.8–0.11 (engine, prompt alone)",
    pattern: /prompt length of (?<prompt>\d+) is longer than the maximum model length of (?<limit>\d+)/i,
    example: "Prompt length of 9000 is longer than the maximum model length of 8192.",
    told: told(9000, 8192),
  },
  {
    source: "vLLM 0.6–0.7 (engine)",
    pattern:
      /prompt \(total length (?<prompt>\d+)\) is too long to fit into the model \(context length (?<limit>\d+)\)/i,
    example: "The prompt (total length 9000) is too long to fit into the model (context length 8192).",
    told: told(9000, 8192),
  },
  {
    source: "vLLM 0.4–0.32 (what is left for the answer)",
    pattern: /max_tokens must be at least 1, got -\d+/i,
    example: "max_tokens must be at least 1, got -17.",
    told: told(null, null),
  },
  {
    source: "vLLM 0.16–0.30 (the answer alone)",
    pattern:
      /max_(?:completion_|output_)?tokens=(?<output>\d+) ?cannot be greater than [a-z_]+=(?:[a-z_]+=)?(?<limit>\d+)/i,
    example:
      "max_tokens=9000cannot be greater than max_model_len=max_total_tokens=8192. Please request fewer output tokens.",
    told: told(null, 8192, 9000),
  },
  {
    source: "SGLang 0.4.3–0.5.20 (what its memory holds)",
    pattern:
      /input length \((?<prompt>\d+)(?: tokens)?\) exceeds (?:the maximum allowed length|(?:the )?model's maximum context length) \((?<limit>\d+)/i,
    example:
      "Input length (160062 tokens) exceeds the maximum allowed length (59862 tokens). Use a shorter input or enable --allow-auto-truncate.",
    told: told(160_062, 59_862),
  },
  {
    source: "SGLang 0.3–0.5.20",
    pattern:
      /input \((?<prompt>\d+) tokens\) is (?:longer|larger) than (?:or equal to )?the model'?s context length \((?<limit>\d+)/i,
    example: "The input (61709 tokens) is longer than the model's context length (40960 tokens).",
    told: told(61_709, 40_960),
  },
  {
    source: "SGLang 0.3.6–0.5.20 (prompt and answer)",
    pattern:
      /token count exceeds the model'?s maximum context length of (?<limit>\d+) tokens\. You requested a total of \d+ tokens: (?<prompt>\d+) tokens from the input messages and (?<output>\d+)/i,
    example:
      "Requested token count exceeds the model's maximum context length of 202752 tokens. You requested a total of 202941 tokens: 170941 tokens from the input messages and 32000 tokens for the completion. Please reduce the number of tokens in the input messages or the completion to fit within the limit.",
    told: told(170_941, 202_752, 32_000),
  },
  {
    source: "SGLang 0.4–0.5.20 (images)",
    pattern: /prompt is too long after expanding multimodal tokens/i,
    example: "Multimodal prompt is too long after expanding multimodal tokens. After expanding 9000 => 41000 >= 32768.",
    told: told(null, null),
  },
  {
    source: "llama.cpp, from b6600 on",
    pattern: /request \((?<prompt>\d+) tokens\) exceeds the available context size \((?<limit>\d+)/i,
    example: "request (9412 tokens) exceeds the available context size (8192 tokens), try increasing it",
    told: told(9412, 8192),
  },
  {
    source: "llama.cpp b5000–b6600",
    pattern: /request exceeds the available context size/i,
    example: "the request exceeds the available context size. try increasing the context size or enable context shift",
    told: told(null, null),
  },
  {
    source: "llama.cpp (in the middle of an answer, status 500)",
    pattern: /context size has been exceeded/i,
    example: "Context size has been exceeded.",
    told: told(null, null),
  },
  {
    source: "Fireworks",
    pattern: /prompt is too long: (?<prompt>\d+),? (?:the )?model maximum context length:? (?<limit>\d+)/i,
    example: "The prompt is too long: 163841, model maximum context length: 131072",
    told: told(163_841, 131_072),
  },
  {
    source: "TGI 1–3, Together (status 422)",
    pattern:
      /`inputs` tokens \+ `max_new_tokens` must be <= (?<limit>\d+)(?:\. Given: (?<prompt>\d+) `inputs` tokens and (?<output>\d+))?/i,
    example:
      "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens and 512 `max_new_tokens`",
    told: told(4000, 4096, 512),
  },
  {
    source: "TGI 1–3 (the prompt alone, status 422)",
    pattern: /`inputs` must have less than (?<limit>\d+) tokens(?:\. Given: (?<prompt>\d+))?/i,
    example: "Input validation error: `inputs` must have less than 4096 tokens. Given: 5000",
    told: told(5000, 4096),
  },
  {
    source: "TensorRT-LLM 0.20–1.x",
    pattern:
      /prompt length \((?<prompt>\d+)(?:\.0)?\)[^.]* should not exceed max_(?:num_tokens|seq_len) \((?<limit>\d+)/i,
    example: "The sum of prompt length (9000.0), query length (0) should not exceed max_num_tokens (8192)",
    told: told(9000, 8192),
  },
  {
    source: "Anthropic's API, behind a proxy",
    pattern: /prompt is too long: (?<prompt>\d+) tokens > (?<limit>\d+) maximum/i,
    example: "prompt is too long: 213462 tokens > 200000 maximum",
    told: told(213_462, 200_000),
  },
  {
    source: "Anthropic's API (prompt and answer), behind a proxy",
    pattern: /exceed context limit: (?<prompt>\d+) \+ (?<output>\d+) > (?<limit>\d+)/i,
    example:
      "input length and `max_tokens` exceed context limit: 199759 + 8192 > 200000, decrease input length or `max_tokens` and try again",
    told: told(199_759, 200_000, 8192),
  },
  {
    source: "OpenAI's API (Responses), Ollama, LiteLLM, behind a proxy",
    pattern:
      /exceeds? the (?:model'?s )?(?:maximum )?context (?:window|length)|ContextWindowExceeded|input (?:length )?exceeds the context/i,
    example: "Your input exceeds the context window of this model. Please adjust your input and try again.",
    told: told(null, null),
  },
  {
    source: "a code or type in place of words: OpenAI's, llama.cpp's",
    pattern: /context_length_exceeded|exceed_context_size/i,
    example: "Error code: 400 - context_length_exceeded",
    told: told(null, null),
  },
  {
    source: "any other version that speaks of the window",
    pattern:
      /maximum context length(?: (?:is|of) (?<limit>\d+))?|context length is only (?<only>\d+)|maximum model length(?: of (?<model>\d+))?|longer than the model'?s context|exceeds? the (?:available|model'?s) context|max_model_len|prompt is too long/i,
    example: "Your prompt does not fit: the maximum context length is 4096.",
    told: told(null, 4096),
  },
];

/** The numbers that a message tells of an overflow, null where it has none; null when it is about something else. */
export function readOverflow(message: string): OverflowNumbers | null {
  for (const { pattern } of OVERFLOW_WORDINGS) {
    const found = pattern.exec(message);
    if (found === null) continue;
    const { prompt, limit, only, model, output } = found.groups ?? {};
    return { promptTokens: number(prompt), maxTokens: number(limit ?? only ?? model), outputTokens: number(output) };
  }
  return null;
}

function number(text: string | undefined): number | null {
  return text === undefined ? null : Number(text);
}
