/** Anthropic Messages, as Claude Code speaks it: `POST /v1/messages` and `POST /v1/messages/count_tokens`. */
import { messagesError } from "./messages-error.js";
import { messagesReply } from "./messages-reply.js";
import { parseMessagesRequest } from "./messages-request.js";
import { MessagesStream } from "./messages-stream.js";
import type { DialectCodec } from "./neutral.js";

/** The codec of Anthropic Messages. `parse` also reads a count_tokens body, which is the same without max_tokens. */
export const messagesCodec: DialectCodec = {
  dialect: "messages",
  parse: parseMessagesRequest,
  stream: (request) => new MessagesStream(request),
  reply: messagesReply,
  error: messagesError,
};

/** Body of the answer to `POST /v1/messages/count_tokens`. */
export function countTokensReply(inputTokens: number): string {
  return JSON.stringify({ input_tokens: inputTokens });
}
