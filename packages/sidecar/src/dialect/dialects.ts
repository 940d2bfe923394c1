/** The dialects that are spoken here, by name. */
import type { Dialect } from "@tito/format";
import { chat, chatWith } from "./chat.js";
import { messagesCodec } from "./messages.js";
import type { DialectCodec } from "./neutral.js";
import { responsesCodec } from "./responses.js";

export function codecOf(dialect: Exclude<Dialect, "completions">): DialectCodec {
  switch (dialect) {
    case "chat":
      return chat;
    case "responses":
      return responsesCodec;
    case "messages":
      return messagesCodec;
  }
}

/** The dialect in which a refusal is worded before the body is read: by the end of the path, else by whose client it is. */
export function dialectOfPath(target: string, anthropic: boolean): Exclude<Dialect, "completions"> {
  const path = target.split("?")[0]!;
  if (path.endsWith("/responses")) return "responses";
  if (path.endsWith("/chat/completions")) return "chat";
  return anthropic || path.endsWith("/messages") || path.endsWith("/messages/count_tokens") ? "messages" : "chat";
}

/** The codec for answers that are written again: reasoning goes under the key that the engine used. */
export function codecFor(codec: DialectCodec, reasoningKey: "reasoning" | "reasoning_content" | null): DialectCodec {
  return codec.dialect === "chat" && reasoningKey !== null ? chatWith(reasoningKey) : codec;
}
