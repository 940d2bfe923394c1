/** OpenAI Responses, as Codex and the Vercel AI SDK speak it: `POST /v1/responses`. */
import type { DialectCodec } from "./neutral.js";
import { responsesError } from "./responses-error.js";
import { responsesReply } from "./responses-reply.js";
import { parseResponsesRequest } from "./responses-request.js";
import { ResponsesStream } from "./responses-stream.js";

/** The codec of OpenAI Responses. Stateless: what must come back with the next request is carried by the items themselves. */
export const responsesCodec: DialectCodec = {
  dialect: "responses",
  parse: parseResponsesRequest,
  stream: (request) => new ResponsesStream(request),
  reply: responsesReply,
  error: responsesError,
};
