/**
 * Tool-call deltas of an engine's chat stream, told apart. Some engines number parallel calls alike, or name none: harnesses match results to
 * calls by id, so that each call has one, and none takes in another's arguments.
 */
import type { ReplyEvent } from "../dialect/neutral.js";
import type { EngineChunk } from "../sample/engine-chunk.js";

type ToolDelta = EngineChunk["tools"][number];

export class CallDeltas {
  /** The latest call under each of the engine's numbers; an engine may send any number of them. */
  private readonly calls = new Map<number, { index: number; id: string | null }>();
  private begun = 0;

  /** Calls so far. */
  get count(): number {
    return this.begun;
  }

  /** `replyId`: what ids are made of where the engine gives none. */
  read(tool: ToolDelta, replyId: string): ReplyEvent[] {
    const events: ReplyEvent[] = [];
    let call = this.calls.get(tool.index);
    if (call === undefined || beginsAnother(tool, call.id)) {
      call = { index: this.begun++, id: tool.id };
      this.calls.set(tool.index, call);
      const id = tool.id || `call_${replyId.replace(/^chatcmpl-/, "")}_${call.index}`;
      events.push({ type: "tool_call", index: call.index, id, name: tool.name ?? "" });
    }
    if (tool.arguments !== "") events.push({ type: "arguments", index: call.index, text: tool.arguments });
    return events;
  }
}

/** Under the number of an earlier call, with a name and an id of its own. */
function beginsAnother({ id, name }: ToolDelta, known: string | null): boolean {
  return Boolean(id) && Boolean(name) && Boolean(known) && id !== known;
}
