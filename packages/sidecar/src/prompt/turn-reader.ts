/**
 * Reads a reply by its sampled ids alone: the bundle's parser, in the renderer's thread, says what they spell. The engine's own text is never looked at.
 * A stop string of the harness cuts the text as the engine would cut it; the ids stay whole.
 */
import type { Message } from "@tito/format";
import type { Renderer, TurnContext, TurnStream } from "@tito/renderer";
import type { NeutralRequest, ReplyEvent } from "../dialect/neutral.js";
import type { EngineChunk } from "../sample/engine-chunk.js";
import { finishOf } from "../sample/finish.js";
import type { ReplyReader } from "../sample/prompt-plan.js";
import type { Sampled } from "../sample/sampled.js";
import { usageOf } from "../sample/usage.js";
import { StopHold } from "./stop-hold.js";

export type ParsingRenderer = Pick<Renderer, "streamParser" | "decode" | "stopIds">;

export class TurnReader implements ReplyReader {
  private readonly holds: { reasoning: StopHold; content: StopHold };
  private readonly given = { reasoning: "", content: "" };
  private stream: TurnStream | null = null;
  private started = false;
  private ended = false;
  private flawed: boolean | null = null;

  constructor(
    private readonly renderer: ParsingRenderer,
    private readonly context: TurnContext,
    private readonly request: Pick<NeutralRequest, "stop" | "toolChoice">,
  ) {
    this.holds = { reasoning: new StopHold(request.stop), content: new StopHold(request.stop) };
  }

  async read(chunk: EngineChunk): Promise<ReplyEvent[]> {
    const events: ReplyEvent[] = [];
    if (!this.started && chunk.error === null) {
      this.started = true;
      const id = (chunk.id ?? "").replace(/^cmpl-/, "chatcmpl-");
      const { promptTokens } = this.context;
      events.push({ type: "start", id, createdS: chunk.createdS ?? 0, model: chunk.model ?? "", promptTokens });
    }
    const ids = chunk.sampled?.ids ?? [];
    if (ids.length === 0) return events;
    this.stream ??= this.renderer.streamParser(this.context);
    const delta = await this.stream.push(Int32Array.from(ids));
    this.give("reasoning", this.holds.reasoning.push(delta.reasoning), events);
    if (delta.content !== "") this.give("reasoning", this.holds.reasoning.flush(), events);
    this.give("content", this.holds.content.push(delta.content), events);
    return events;
  }

  async end(sampled: Sampled): Promise<ReplyEvent[]> {
    this.ended = true;
    this.stream ??= this.renderer.streamParser(this.context);
    const whole = await this.stream.end();
    const stopSequence = await this.stopString(sampled);
    const { message, malformed } = await this.asTheHarnessGetsIt(whole.message, whole.malformed, sampled, stopSequence);
    this.flawed = malformed;
    const events: ReplyEvent[] = [];
    this.give("reasoning", left(message.reasoning, this.given.reasoning), events);
    this.give("content", left(message.content, this.given.content), events);
    const calls = message.tool_calls ?? [];
    for (const [index, call] of calls.entries()) {
      events.push({ type: "tool_call", index, id: call.id, name: call.name });
      if (call.arguments !== "") events.push({ type: "arguments", index, text: call.arguments });
    }
    events.push({
      type: "finish",
      reason: finishOf(sampled.finish, calls.length > 0),
      usage: usageOf(sampled),
      stopSequence,
    });
    return events;
  }

  malformed(): boolean | null {
    return this.flawed;
  }

  /** Frees the parser of a reply that was given up. */
  close(): void {
    if (this.ended || this.stream === null) return;
    this.ended = true;
    this.stream.end().catch(() => undefined);
  }

  private give(type: "reasoning" | "content", text: string, events: ReplyEvent[]): void {
    if (text === "") return;
    this.given[type] += text;
    events.push({ type, text });
  }

  /** The stop string that ended the answer. Some engines do not say which: then it is the first that the text holds, unless the turn ended by itself. */
  private async stopString(sampled: Sampled): Promise<string | null> {
    const { stopReason, finish, ids } = sampled;
    const { stop } = this.request;
    if (typeof stopReason === "string") return stop.includes(stopReason) ? stopReason : null;
    if (stop.length === 0 || finish !== "stop" || stopReason !== null) return null;
    if (this.renderer.stopIds.includes(ids.at(-1) ?? -1)) return null;
    return firstOf(await this.rawText(sampled), stop);
  }

  private async asTheHarnessGetsIt(
    message: Message,
    malformed: boolean,
    sampled: Sampled,
    stop: string | null,
  ): Promise<{ message: Message; malformed: boolean }> {
    if (stop !== null) return this.cutAtStop(message, malformed, sampled, stop);
    if (this.request.toolChoice !== "none" || message.tool_calls === undefined) return { message, malformed };
    // Calls that the harness does not want are text to it, as they are to an engine.
    return { message: { role: "assistant", content: await this.rawText(sampled) }, malformed: true };
  }

  /** The engine ends its text before the stop string, wherever in the turn that is. */
  private async cutAtStop(message: Message, malformed: boolean, sampled: Sampled, stop: string) {
    const content = typeof message.content === "string" ? message.content : "";
    if (message.tool_calls === undefined) {
      if (content.includes(stop)) return { message: { ...message, content: before(content, stop) }, malformed };
      const reasoning = message.reasoning ?? "";
      if (content === "" && reasoning.includes(stop))
        return { message: { ...message, reasoning: before(reasoning, stop) }, malformed };
    }
    // It lies in the marks of a block or of a call: what is left of the text does not parse any more.
    const raw = before(await this.rawText(sampled), stop);
    return { message: { role: "assistant" as const, content: raw }, malformed: true };
  }

  private rawText(sampled: Sampled): Promise<string> {
    const { ids } = sampled;
    const ends = this.renderer.stopIds.includes(ids.at(-1) ?? -1);
    return this.renderer.decode(ends ? ids.slice(0, -1) : ids);
  }
}

const before = (text: string, stop: string): string => {
  const at = text.indexOf(stop);
  return at < 0 ? text : text.slice(0, at);
};

/** The one that stands earliest in the text, or null. */
function firstOf(text: string, stops: readonly string[]): string | null {
  const found = stops.filter((stop) => text.includes(stop)).sort((a, b) => text.indexOf(a) - text.indexOf(b));
  return found[0] ?? null;
}

/** What of the final text was not given yet; nothing when something else was given. */
function left(text: unknown, given: string): string {
  return typeof text === "string" && text.startsWith(given) ? text.slice(given.length) : "";
}
