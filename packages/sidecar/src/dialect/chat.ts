/** OpenAI chat completions as a dialect: a pair of pure functions, request in and events out. */
import { chatError, chatReply, chatStream, type ReasoningKey } from "./chat-reply.js";
import { parseChatRequest } from "./chat-request.js";
import type { DialectCodec } from "./neutral.js";

/** The codec that writes reasoning under the engine's own key. */
export function chatWith(reasoningKey: ReasoningKey): DialectCodec {
  return {
    dialect: "chat",
    parse: parseChatRequest,
    stream: (request) => chatStream(request, reasoningKey),
    reply: (_request, events) => chatReply(events, reasoningKey),
    error: chatError,
  };
}

export const chat: DialectCodec = chatWith("reasoning_content");
