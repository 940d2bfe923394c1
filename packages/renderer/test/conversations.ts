/** The golden conversations, and their reading into neutral messages. */
import type { ContentPart, Message } from "@tito/format";

interface ChatMessage {
  role: Message["role"];
  content?: string | ContentPart[] | null;
  reasoning_content?: string;
  tool_calls?: { id: string; function: { name: string; arguments: string } }[];
  tool_call_id?: string;
  name?: string;
}

export interface GoldenConversation {
  name: string;
  messages: ChatMessage[];
  tools: { name: string; description: string; parameters: string }[];
  add_generation_prompt: boolean;
  kwargs: Record<string, unknown>;
}

/** Odd conversations, and what the reference makes of each, by family; null where it refuses. */
export interface OddGolden {
  conversations: GoldenConversation[];
  families: Record<string, ({ sha256: string; text?: string; ids?: string } | null)[]>;
}

/** OpenAI chat messages as the dialect reads them. */
export function neutralMessages(messages: readonly ChatMessage[]): Message[] {
  return messages.map(({ role, content, reasoning_content, tool_calls, tool_call_id, name }) => {
    const message: Message = { role };
    if (content !== undefined) message.content = content;
    if (reasoning_content !== undefined) message.reasoning = reasoning_content;
    if (tool_calls !== undefined) {
      message.tool_calls = tool_calls.map((call) => ({
        id: call.id,
        name: call.function.name,
        arguments: call.function.arguments,
      }));
    }
    if (tool_call_id !== undefined) message.tool_call_id = tool_call_id;
    if (name !== undefined) message.name = name;
    return message;
  });
}
