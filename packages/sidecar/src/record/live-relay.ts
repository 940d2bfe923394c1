/**
 * Chunks on their way to the harness, while they are collected. Nothing is written before the first delta, so that an engine that
 * aborts or fails until then can be asked again; from the first held frame on everything waits for the record.
 */
import type { ReasoningKey } from "../dialect/chat-reply.js";
import type { ReplyEvent } from "../dialect/neutral.js";
import type { EngineChunk } from "../sample/engine-chunk.js";
import type { PromptPlan, ReplyReader } from "../sample/prompt-plan.js";
import type { SampleHooks } from "../sample/sample.js";
import type { Sampled } from "../sample/sampled.js";
import type { Frame, ReplyWriter } from "./relay.js";
import type { Client } from "./release.js";

interface Piece {
  raw: string;
  chunk: EngineChunk;
  events: readonly ReplyEvent[];
}

export class LiveRelay implements SampleHooks {
  /** All events so far. */
  readonly events: ReplyEvent[] = [];
  /** A delta has gone to the harness: the engine can not be asked again unseen. */
  begun = false;
  reasoningKey: ReasoningKey | null = null;
  private readonly reader: ReplyReader;
  private waiting: Piece[] = [];
  private holding: boolean;
  private held = "";
  private last: readonly ReplyEvent[] = [];

  /** `name`: what ids of tool calls are made of. `streamed`: the harness wants a stream. `keepaliveMs`: silence after which an unstreamed one is kept alive. `signal`: nobody waits for a slow harness any more. */
  constructor(
    private readonly plan: Pick<PromptPlan, "reader" | "stream">,
    private readonly writer: ReplyWriter,
    private readonly client: Client,
    private readonly mode: { name: string; streamed: boolean; keepaliveMs: number; signal: AbortSignal },
  ) {
    this.reader = plan.reader(mode.name);
    // A whole reply that is streamed piecewise is good or bad as a whole.
    this.holding = !plan.stream;
  }

  /** The engine has taken the call: a stream begins, a body is kept alive from here on. */
  onAnswer(): void {
    if (this.mode.streamed) this.client.beginStream();
    else this.client.keepBodyAlive(this.mode.keepaliveMs);
  }

  async onChunk(raw: string, chunk: EngineChunk): Promise<void> {
    const events = await this.reader.read(chunk);
    for (const event of events) this.events.push(event);
    this.reasoningKey ??= chunk.reasoningKey;
    if (!this.mode.streamed) {
      if (!this.plan.stream) return;
      return this.writer.collect(raw, chunk);
    }
    this.waiting.push({ raw, chunk, events });
    const aborts = chunk.finish === "abort" || chunk.finish === "error";
    const hasDelta = events.some((event) => event.type !== "start");
    if (aborts || this.holding || (!this.begun && !hasDelta)) return;
    await this.flush();
  }

  /** The reply is whole: its last events. */
  async end(sampled: Sampled): Promise<void> {
    this.last = await this.reader.end(sampled);
    for (const event of this.last) this.events.push(event);
  }

  /** After `end`, everything that waits for the record: the rest of the stream, or the whole body. `raw` is the engine's body, if it was one. */
  rest(raw: string | null): string {
    if (!this.mode.streamed) return this.writer.body(raw, this.events);
    const frames = [...this.written(), ...this.writer.end(this.last)];
    return this.held + frames.map((frame) => frame.text).join("");
  }

  /** The output did not parse, as far as the reader knows. */
  get malformed(): boolean | null {
    return this.reader.malformed();
  }

  /** Nothing more comes. */
  release(): void {
    this.reader.close();
  }

  /** What waits, as frames; it waits no more. */
  private written(): Frame[] {
    const pieces = this.waiting;
    this.waiting = [];
    const frames: Frame[] = [];
    for (const { raw, chunk, events } of pieces) {
      for (const frame of this.writer.chunk(raw, chunk, events)) frames.push(frame);
    }
    return frames;
  }

  private async flush(): Promise<void> {
    let live = "";
    for (const frame of this.written()) {
      this.holding ||= frame.held;
      if (this.holding) this.held += frame.text;
      else live += frame.text;
    }
    if (live === "") return;
    this.begun = true;
    await this.client.write(live, this.mode.signal);
  }
}
