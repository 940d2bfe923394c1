/**
 * Tool-call deltas of an engine's chat stream, told apart. Some engines number parallel calls alike, or name none: harnesses match results to
 * calls by id, so that each call has one, and none takes in another's arguments.
 */
import type { ReplyEvent } from "../dialect/neutral.js";
import type { EngineChunk } from "../sample/engine-chunk.js";

type ToolDelta = EngineChunk["tools"][number];

export class CallDeltas {
  private readonly calls: { engineIndex: number; id: string | null }[] = [];

  /** Calls so far. */
  get count(): number {
    return this.calls.length;
  }

  /** `replyId`: what ids are made of where the engine gives none. */
  read(tool: ToolDelta, replyId: string): ReplyEvent[] {
    const events: ReplyEvent[] = [];
    let index = this.calls.findLastIndex((call) => call.engineIndex === tool.index);
    if (index < 0 || this.beginsAnother(index, tool)) {
      index = this.calls.push({ engineIndex: tool.index, id: tool.id }) - 1;
      const id = tool.id || `call_${replyId.replace(/^chatcmpl-/, "")}_${index}`;
      events.push({ type: "tool_call", index, id, name: tool.name ?? "" });
    }
    if (tool.arguments !== "") events.push({ type: "arguments", index, text: tool.arguments });
    return events;
  }

  /** Under the number of an earlier call, with a name and an id of its own. */
  private beginsAnother(index: number, { id, name }: ToolDelta): boolean {
    const known = this.calls[index]!.id;
    return Boolean(id) && Boolean(name) && Boolean(known) && id !== known;
  }
}
