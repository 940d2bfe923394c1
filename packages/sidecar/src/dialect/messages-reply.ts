/** Reply events → the whole message as one JSON body. */
import { TitoError } from "@tito/format";
import { signThinking } from "./messages-marker.js";
import type { NeutralRequest, ReplyEvent, Usage } from "./neutral.js";
import { wrapArguments } from "./tool-input.js";

type Block = { kind: "thinking" | "text"; text: string } | { kind: "tool_use"; id: string; name: string; text: string };

/** @throws TitoError `internal` when the events are not complete. */
export function messagesReply(_request: NeutralRequest, events: readonly ReplyEvent[]): string {
  const start = events.find((event) => event.type === "start");
  const finish = events.find((event) => event.type === "finish");
  if (start === undefined || finish === undefined)
    throw new TitoError("internal", "a reply needs its start and finish events");
  const content = collectBlocks(events).map(blockJson).join(",");
  const head = { id: messageId(start.id), type: "message", role: "assistant", model: start.model };
  const tail = {
    stop_reason: stopReason(finish),
    stop_sequence: finish.stopSequence,
    usage: messageUsage(finish.usage),
  };
  // Spliced, not stringified: the arguments keep their spelling.
  return `${JSON.stringify(head).slice(0, -1)},"content":[${content}],${JSON.stringify(tail).slice(1)}`;
}

function collectBlocks(events: readonly ReplyEvent[]): Block[] {
  const blocks: Block[] = [];
  const calls = new Map<number, Block>();
  for (const event of events) {
    if (event.type === "reasoning" || event.type === "content") {
      const kind = event.type === "reasoning" ? "thinking" : "text";
      const last = blocks.at(-1);
      if (event.text === "") continue;
      if (last?.kind === kind) last.text += event.text;
      else blocks.push({ kind, text: event.text });
    } else if (event.type === "tool_call") {
      const block: Block = { kind: "tool_use", id: event.id, name: event.name, text: "" };
      calls.set(event.index, block);
      blocks.push(block);
    } else if (event.type === "arguments") {
      const block = calls.get(event.index);
      if (block === undefined)
        throw new TitoError("upstream_invalid", `arguments for call ${event.index}, which never began`);
      block.text += event.text;
    }
  }
  return blocks;
}

function blockJson(block: Block): string {
  switch (block.kind) {
    case "thinking":
      return JSON.stringify({ type: "thinking", thinking: block.text, signature: signThinking(block.text) });
    case "text":
      return JSON.stringify({ type: "text", text: block.text });
    case "tool_use":
      return `${JSON.stringify({ type: "tool_use", id: block.id, name: block.name }).slice(0, -1)},"input":${wrapArguments(block.text)}}`;
  }
}

/** `msg_…`, whatever the engine called its reply. */
export function messageId(id: string): string {
  return id.startsWith("msg_") ? id : `msg_${id}`;
}

export function stopReason(finish: ReplyEvent & { type: "finish" }): string {
  switch (finish.reason) {
    case "tool_calls":
      return "tool_use";
    case "length":
      return "max_tokens";
    case "stop":
      return finish.stopSequence === null ? "end_turn" : "stop_sequence";
  }
}

/** Anthropic counts cached prompt tokens apart from the others. */
export function messageUsage(usage: Usage): Record<string, number> {
  const cached = usage.cachedTokens ?? 0;
  return {
    input_tokens: usage.promptTokens - cached,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: cached,
    output_tokens: usage.completionTokens,
  };
}
