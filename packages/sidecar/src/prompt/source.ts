/**
 * Stop 3, which exact prompt is sent. A source turns a neutral request into what goes to the engine, and reads what comes back.
 * The engine source lets the engine render; the renderer source renders and tokenizes by itself and sends ids.
 */
import type { NeutralRequest } from "../dialect/neutral.js";
import type { PromptPlan } from "../sample/prompt-plan.js";
import type { Conversation } from "../trajectory/conversation.js";

export interface PromptInput {
  request: NeutralRequest;
  conversation: Conversation;
}

export interface PromptSource {
  /** @throws TitoError `unsupported` or `context_overflow` before any token is spent. */
  prepare(input: PromptInput): Promise<PromptPlan>;
  /** Prompt ids that the request would have. */
  countTokens(input: PromptInput): Promise<number>;
}
