/**
 * Tool-call deltas of an engine's chat stream, told apart. Some engines number parallel calls alike, name none of them, or two by one name: harnesses
 * match results to calls by id, so that each call has one that is its own, and none takes in another's arguments.
 */
import type { ReplyEvent } from "../dialect/neutral.js";
import type { EngineChunk } from "./engine-chunk.js";

type ToolDelta = EngineChunk["tools"][number];

interface Call {
  index: number;
  /** What the harness knows it by. */
  id: string;
  /** The engine's own id, if it gave one. */
  given: string | null;
  named: boolean;
  /** Arguments so far, of a call without an id: where they are whole, a name begins another call. */
  text: string;
}

/** Where a delta belongs. */
export interface PlacedDelta {
  index: number;
  id: string;
  /** The first delta of its call. */
  begins: boolean;
}

export class CallDeltas {
  /** Calls whose name has not come yet: what they are events of. Nothing of a call, or of those behind it, is told before its name is known. */
  private readonly nameless = new Map<number, ReplyEvent & { type: "tool_call" }>();
  private waiting: ReplyEvent[] = [];
  /** The latest call under each of the engine's numbers; an engine may send any number of them. */
  private readonly calls = new Map<number, Call>();
  private readonly taken = new Set<string>();
  private begun = 0;

  /** `name`: what ids are made of where the engine gives none; unlike any other reply's. Null: the reply's own id, and what the engine gave stays as it is. */
  constructor(private readonly name: string | null) {}

  /** Calls so far. */
  get count(): number {
    return this.begun;
  }

  /** Events of one delta, and of those that waited for it: a name may come in a later delta than the id. */
  read(tool: ToolDelta, replyId: string): ReplyEvent[] {
    const { index, id, begins } = this.place(tool, replyId);
    const name = tool.name ?? "";
    if (begins) {
      const event = { type: "tool_call" as const, index, id, name };
      if (name === "") this.nameless.set(index, event);
      this.waiting.push(event);
    } else if (name !== "") {
      const event = this.nameless.get(index);
      if (event !== undefined) event.name = name;
      this.nameless.delete(index);
    }
    if (tool.arguments !== "") this.waiting.push({ type: "arguments", index, text: tool.arguments });
    return this.nameless.size === 0 ? this.rest() : [];
  }

  /** What still waits for a name: at the end of a reply, none comes any more. */
  rest(): ReplyEvent[] {
    const events = this.waiting;
    this.waiting = [];
    this.nameless.clear();
    return events;
  }

  /** Deltas in order, each once. */
  place(tool: ToolDelta, replyId: string): PlacedDelta {
    const known = this.calls.get(tool.index);
    const begins = known === undefined || beginsAnother(tool, known);
    const call = begins ? this.begin(tool, replyId) : known;
    if (call.given === null) call.text += tool.arguments;
    call.named ||= Boolean(tool.name);
    return { index: call.index, id: call.id, begins };
  }

  private begin(tool: ToolDelta, replyId: string): Call {
    const index = this.begun++;
    const given = tool.id || null;
    const usable = given !== null && (this.name === null || !this.taken.has(given));
    const id = usable ? given : `call_${this.name ?? replyId.replace(/^chatcmpl-/, "")}_${index}`;
    this.taken.add(id);
    const call = { index, id, given, named: false, text: "" };
    this.calls.set(tool.index, call);
    return call;
  }
}

/** Under the number of an earlier call: with a name and an id of its own, or, without ids, with a name when the earlier call's arguments are whole. */
function beginsAnother({ id, name }: ToolDelta, known: Call): boolean {
  if (!name) return false;
  if (id) return known.given !== null && id !== known.given;
  return known.given === null && known.named && isWhole(known.text);
}

function isWhole(text: string): boolean {
  if (!text.trimEnd().endsWith("}")) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
