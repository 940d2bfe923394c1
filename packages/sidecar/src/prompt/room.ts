/** How many tokens an answer may have behind a prompt. */
import { TitoError } from "@tito/format";

/** Tokens that an answer may have. The wording is the one that harnesses look for. @throws TitoError `context_overflow`. */
export function roomLeft(contextTokensMax: number, promptTokens: number): number {
  if (promptTokens < contextTokensMax) return contextTokensMax - promptTokens;
  throw new TitoError(
    "context_overflow",
    `This model's maximum context length is ${contextTokensMax} tokens. However, your messages resulted in ${promptTokens} tokens.`,
  );
}
