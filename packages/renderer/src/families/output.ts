/** What a parser makes of one sampled turn. Parsers are total: what does not follow the family's form comes back as raw text with a flag, never repaired. */
import { createHash } from "node:crypto";
import type { Message, ToolDefinition } from "@tito/format";
import type { Span } from "./spans.js";

export interface ParsedCall {
  name: string;
  /** JSON text; as the model wrote it where the model writes JSON. */
  arguments: string;
}

export interface ParsedOutput {
  /** Null when the turn holds no reasoning block. */
  reasoning: string | null;
  content: string;
  calls: ParsedCall[];
  malformed: boolean;
}

/** What a parser may know beside the sampled ids. */
export interface ParseContext {
  /** The prompt ended inside a reasoning block, so the sampled ids begin in it. */
  reasoning_open: boolean;
  /** The sampled ids ended with a stop id, which is not among the spans. */
  ended: boolean;
  tools: readonly ToolDefinition[];
}

export type Parse = (spans: readonly Span[], context: ParseContext) => ParsedOutput;

/** Makes tool-call ids: the same for the same ids at the same place of a conversation, whoever parses them. */
function toolCallId(promptTokens: number, sampledIds: Int32Array, index: number): string {
  const bytes = new Uint8Array(sampledIds.buffer, sampledIds.byteOffset, sampledIds.byteLength);
  const hash = createHash("sha256").update(bytes).update(`/${promptTokens}/${index}`);
  return `call_${hash.digest("hex").slice(0, 24)}`;
}

/** The assistant message for the harness. Content is null when the turn only calls tools. */
export function toMessage(output: ParsedOutput, promptTokens: number, sampledIds: Int32Array): Message {
  const message: Message = { role: "assistant", content: output.content };
  if (output.content === "" && output.calls.length > 0) message.content = null;
  if (output.reasoning !== null) message.reasoning = output.reasoning;
  if (output.calls.length > 0) {
    message.tool_calls = output.calls.map((call, i) => ({ id: toolCallId(promptTokens, sampledIds, i), ...call }));
  }
  return message;
}
