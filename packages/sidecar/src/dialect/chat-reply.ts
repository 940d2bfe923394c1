/** OpenAI chat completions, reply side: neutral events in, stream frames or one body out. */
import { chatUsage } from "./chat-usage.js";
import { ERROR_WORDS, openAiErrorBody } from "./error-words.js";
import { assembleMessage } from "./message.js";
import type { DialectError, NeutralRequest, ReplyEvent, StreamEncoder } from "./neutral.js";
import { retryHeaders } from "./retry-headers.js";
import { retryWords } from "./retry-words.js";

/** Engines spell it either way; harnesses echo what they got. */
export type ReasoningKey = "reasoning" | "reasoning_content";

type Frame = { text: string; held: boolean };

/** One SSE event of data. */
export function chatFrame(json: string): string {
  return `data: ${json}\n\n`;
}

export const CHAT_DONE = chatFrame("[DONE]");
const CHAT_PING = ": ping\n\n";

/** Encoder of one chat stream. Held from the finish on. */
export function chatStream(request: NeutralRequest, reasoningKey: ReasoningKey): StreamEncoder {
  let head = { id: "", created: 0, model: "" };
  const chunk = (choices: unknown[], usage: Record<string, unknown> | null = null): string =>
    chatFrame(
      JSON.stringify({
        id: head.id,
        object: "chat.completion.chunk",
        created: head.created,
        model: head.model,
        choices,
        ...(request.includeUsage ? { usage } : {}),
      }),
    );
  const delta = (value: Record<string, unknown>, finish: string | null = null): string =>
    chunk([{ index: 0, delta: value, logprobs: null, finish_reason: finish }]);
  const encode = (event: ReplyEvent): Frame[] => {
    switch (event.type) {
      case "start":
        head = { id: event.id, created: event.createdS, model: event.model };
        return [{ text: delta({ role: "assistant", content: "" }), held: false }];
      case "reasoning":
        return [{ text: delta({ [reasoningKey]: event.text }), held: false }];
      case "content":
        return [{ text: delta({ content: event.text }), held: false }];
      case "tool_call": {
        const call = {
          index: event.index,
          id: event.id,
          type: "function",
          function: { name: event.name, arguments: "" },
        };
        return [{ text: delta({ tool_calls: [call] }), held: false }];
      }
      case "arguments": {
        const call = { index: event.index, function: { arguments: event.text } };
        return [{ text: delta({ tool_calls: [call] }), held: false }];
      }
      case "finish": {
        const frames = [delta({}, event.reason)];
        if (request.includeUsage) frames.push(chunk([], chatUsage(event.usage)));
        return [...frames, CHAT_DONE].map((text) => ({ text, held: true }));
      }
    }
  };
  return {
    encode,
    keepalive: () => CHAT_PING,
    error: (error) => chatFrame(chatErrorBody(retryWords(error))) + CHAT_DONE,
  };
}

/** The whole reply as one `chat.completion` body. */
export function chatReply(events: readonly ReplyEvent[], reasoningKey: ReasoningKey): string {
  const start = events.find((event) => event.type === "start");
  const finish = events.find((event) => event.type === "finish");
  if (start === undefined || finish === undefined) throw new Error("a reply needs a start and a finish");
  const text = (type: "content" | "reasoning"): string =>
    events.map((event) => (event.type === type ? event.text : "")).join("");
  const toolCalls = (assembleMessage(events).tool_calls ?? []).map((call) => ({
    id: call.id,
    type: "function",
    function: { name: call.name, arguments: call.arguments },
  }));
  const content = text("content");
  const reasoning = text("reasoning");
  const message = {
    role: "assistant",
    content: content === "" && toolCalls.length > 0 ? null : content,
    refusal: null,
    ...(reasoning === "" ? {} : { [reasoningKey]: reasoning }),
    ...(toolCalls.length === 0 ? {} : { tool_calls: toolCalls }),
  };
  return JSON.stringify({
    id: start.id,
    object: "chat.completion",
    created: start.createdS,
    model: start.model,
    choices: [{ index: 0, message, logprobs: null, finish_reason: finish.reason }],
    usage: chatUsage(finish.usage),
  });
}

/** An error before any byte was sent. `x-should-retry` is what the official SDKs obey. */
export function chatError(error: DialectError): { status: number; body: string; headers: Record<string, string> } {
  return { status: ERROR_WORDS[error.kind].status, body: chatErrorBody(error), headers: retryHeaders(error) };
}

function chatErrorBody(error: DialectError): string {
  if (error.kind !== "context_overflow") return openAiErrorBody(error, error.message, null);
  return openAiErrorBody(error, overflowMessage(error), "messages");
}

/** Clients that know no codes look for OpenAI's words (LiteLLM, OpenCode): they stand before an engine's own, where those are others. */
function overflowMessage({ message, overflow }: DialectError): string {
  if (/maximum context length/i.test(message)) return message;
  const { promptTokens = null, maxTokens = null } = overflow ?? {};
  if (promptTokens === null || maxTokens === null)
    return `The prompt exceeds this model's maximum context length: ${message}`;
  return `This model's maximum context length is ${maxTokens} tokens. However, your messages resulted in ${promptTokens} tokens. (${message})`;
}
