/** Reply events → the server-sent events of the Messages API. */
import { TitoError } from "@tito/format";
import { messagesErrorBody } from "./messages-error.js";
import { signThinking } from "./messages-marker.js";
import { messageId, messageUsage, stopReason } from "./messages-reply.js";
import type { DialectError, NeutralRequest, ReplyEvent, StreamEncoder } from "./neutral.js";
import { retryWords } from "./retry-words.js";

type Frame = { text: string; held: boolean };
type BlockEvent = Exclude<ReplyEvent, { type: "start" | "finish" }>;
type OpenBlock = { kind: "thinking" | "text" | "tool_use"; call: number; text: string };

/**
 * Blocks follow each other strictly. The first call streams live; whatever comes after it would be held anyway (its end is what is
 * held first), so it waits in order and is written at the end. That also lets arguments of several calls arrive interleaved.
 */
export class MessagesStream implements StreamEncoder {
  private held = false;
  private index = -1;
  private open: OpenBlock | null = null;
  private readonly waiting: BlockEvent[] = [];

  constructor(private readonly request: NeutralRequest) {}

  encode(event: ReplyEvent): Frame[] {
    switch (event.type) {
      case "start":
        return [this.frame("message_start", { message: startMessage(event, this.request.model) })];
      case "finish":
        return this.finish(event);
      case "reasoning":
      case "content":
      case "tool_call":
      case "arguments":
        return this.block(event);
    }
  }

  keepalive(): string {
    return this.frame("ping", {}).text;
  }

  error(error: DialectError): string {
    return `event: error\ndata: ${messagesErrorBody(retryWords(error))}\n\n`;
  }

  private block(event: BlockEvent): Frame[] {
    const live = this.open?.kind !== "tool_use" || (event.type === "arguments" && event.index === this.open.call);
    if (!live) {
      this.waiting.push(event);
      return [];
    }
    return this.write(event);
  }

  private write(event: BlockEvent): Frame[] {
    switch (event.type) {
      case "reasoning":
        return event.text === "" ? [] : this.text("thinking", event.text);
      case "content":
        return event.text === "" ? [] : this.text("text", event.text);
      case "tool_call": {
        const block = { type: "tool_use", id: event.id, name: event.name, input: {} };
        return this.begin({ kind: "tool_use", call: event.index, text: "" }, block);
      }
      case "arguments": {
        if (this.open?.kind !== "tool_use" || this.open.call !== event.index) {
          throw new TitoError("upstream_invalid", `arguments for call ${event.index}, which never began`);
        }
        return event.text === "" ? [] : [this.delta({ type: "input_json_delta", partial_json: event.text })];
      }
    }
  }

  private text(kind: "thinking" | "text", text: string): Frame[] {
    const begun =
      this.open?.kind === kind
        ? []
        : this.begin(
            { kind, call: -1, text: "" },
            kind === "thinking" ? { type: "thinking", thinking: "", signature: "" } : { type: "text", text: "" },
          );
    if (this.open !== null) this.open.text += text;
    const delta = kind === "thinking" ? { type: "thinking_delta", thinking: text } : { type: "text_delta", text };
    return [...begun, this.delta(delta)];
  }

  private begin(block: OpenBlock, json: Record<string, unknown>): Frame[] {
    const frames = this.end();
    this.index += 1;
    this.open = block;
    return [...frames, this.frame("content_block_start", { index: this.index, content_block: json })];
  }

  private end(): Frame[] {
    const block = this.open;
    if (block === null) return [];
    this.open = null;
    const frames: Frame[] = [];
    if (block.kind === "thinking")
      frames.push(this.delta({ type: "signature_delta", signature: signThinking(block.text) }));
    if (block.kind === "tool_use") this.held = true;
    frames.push(this.frame("content_block_stop", { index: this.index }));
    return frames;
  }

  private finish(event: ReplyEvent & { type: "finish" }): Frame[] {
    const frames = orderByCall(this.waiting).flatMap((waiting) => this.write(waiting));
    frames.push(...this.end());
    this.held = true;
    frames.push(
      this.frame("message_delta", {
        delta: { stop_reason: stopReason(event), stop_sequence: event.stopSequence },
        usage: messageUsage(event.usage),
      }),
      this.frame("message_stop", {}),
    );
    return frames;
  }

  private delta(delta: Record<string, unknown>): Frame {
    return this.frame("content_block_delta", { index: this.index, delta });
  }

  private frame(type: string, fields: Record<string, unknown>): Frame {
    return { text: `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`, held: this.held };
  }
}

/** Moves every call's arguments directly behind its beginning; everything else keeps its order. */
function orderByCall(events: readonly BlockEvent[]): BlockEvent[] {
  const begun = new Map<number, BlockEvent[]>();
  for (const event of events) if (event.type === "tool_call") begun.set(event.index, []);
  for (const event of events) if (event.type === "arguments") begun.get(event.index)?.push(event);
  return events.flatMap((event) => {
    if (event.type === "arguments") return begun.has(event.index) ? [] : [event];
    return event.type === "tool_call" ? [event, ...begun.get(event.index)!] : [event];
  });
}

function startMessage(event: ReplyEvent & { type: "start" }, model: string | null): Record<string, unknown> {
  return {
    id: messageId(event.id),
    type: "message",
    role: "assistant",
    model: event.model || model || "",
    content: [],
    stop_reason: null,
    stop_sequence: null,
    // What was sampled and what came from a cache is known at the end, in message_delta; some clients read the prompt's count only here.
    usage: {
      input_tokens: event.promptTokens ?? 0,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 0,
      output_tokens: 0,
    },
  };
}
