/** Reply events → the server-sent events of the Responses API. */
import { randomUUID } from "node:crypto";
import { TitoError } from "@tito/format";
import type { DialectError, NeutralRequest, ReplyEvent, StreamEncoder } from "./neutral.js";
import { errorCode } from "./responses-error.js";
import {
  customInput,
  itemJson,
  newCall,
  newItem,
  type OutputItem,
  type ResponseHead,
  reasoningPart,
  responseId,
  responseJson,
  textPart,
} from "./responses-items.js";
import { responseKey } from "./responses-marker.js";
import { retryWords } from "./retry-words.js";

type Frame = { text: string; held: boolean };

/**
 * Reasoning and text are finished when the next item begins; calls at the end, so that their arguments may come in any order.
 * Held from the first finished message or call on: Codex acts on a finished item at once.
 */
export class ResponsesStream implements StreamEncoder {
  private head: ResponseHead | null = null;
  private key = "";
  private sequence = 0;
  private held = false;
  private readonly items: OutputItem[] = [];
  private readonly places = new Map<OutputItem, number>();
  private readonly calls = new Map<number, OutputItem & { kind: "call" }>();
  private readonly finished = new Set<OutputItem>();

  constructor(private readonly request: NeutralRequest) {}

  encode(event: ReplyEvent): Frame[] {
    switch (event.type) {
      case "start":
        return this.start({ id: responseId(event.id), createdS: event.createdS, model: event.model });
      case "reasoning":
        return event.text === "" ? [] : this.text("reasoning", event.text);
      case "content":
        return event.text === "" ? [] : this.text("message", event.text);
      case "tool_call":
        return this.beginCall(event);
      case "arguments":
        return this.addArguments(event.index, event.text);
      case "finish":
        return this.finish(event);
    }
  }

  /**
   * Before the reply begins, `response.in_progress` needs a response to speak of: it is announced early, under an id of ours.
   * Later ones repeat the output so far, because the openai SDK takes their response as the new state.
   */
  keepalive(): string {
    const early = this.head === null;
    const frames = early
      ? this.start({ id: `resp_${randomUUID()}`, createdS: 0, model: this.request.model ?? "" })
      : [];
    const ping = early ? [] : [this.frame("response.in_progress", { response: this.snapshot() })];
    return [...frames, ...ping].map((frame) => frame.text).join("");
  }

  /** `response.failed` is what Codex reads; `error` is what makes the SDKs throw (one reads it flat, others nested). */
  error(failure: DialectError): string {
    const error = retryWords(failure);
    const head = this.head ?? { id: "resp_failed", createdS: 0, model: this.request.model ?? "" };
    const code = errorCode(error);
    const response = responseJson(head, "failed", { error: { code, message: error.message } });
    const failed = this.frame("response.failed", { response });
    const detail = { code, message: error.message, param: null };
    return failed.text + this.frame("error", { ...detail, error: { type: code, ...detail } }).text;
  }

  private snapshot(): Record<string, unknown> {
    const output = this.items.map((item) => itemJson(item, this.finished.has(item) ? "completed" : "in_progress"));
    return responseJson(this.knownHead(), "in_progress", { output });
  }

  private start(head: ResponseHead): Frame[] {
    if (this.head !== null) {
      // Announced early by a keepalive: the id stays, the rest is now known.
      this.head = { ...head, id: this.head.id };
      return [];
    }
    this.head = head;
    this.key = responseKey(head.id);
    const response = responseJson(head, "in_progress", {});
    return [this.frame("response.created", { response }), this.frame("response.in_progress", { response })];
  }

  private text(kind: "reasoning" | "message", text: string): Frame[] {
    const frames: Frame[] = [];
    let item = this.items.at(-1);
    if (item?.kind !== kind) {
      frames.push(...this.finishTexts());
      item = newItem(kind, this.key, this.items.length);
      frames.push(...this.add(item));
      const part = kind === "reasoning" ? reasoningPart("") : textPart("");
      frames.push(this.frame("response.content_part.added", { ...this.place(item), content_index: 0, part }));
    }
    if (item.kind === "call") throw new TitoError("internal", "a text delta reached a call item");
    item.text += text;
    const place = { ...this.place(item), content_index: 0, delta: text };
    frames.push(
      kind === "reasoning"
        ? this.frame("response.reasoning_text.delta", place)
        : this.frame("response.output_text.delta", { ...place, logprobs: [] }),
    );
    return frames;
  }

  private beginCall(call: { index: number; id: string; name: string }): Frame[] {
    const frames = this.finishTexts();
    const item = newCall(call, this.request.callShapes, this.key, this.items.length);
    this.calls.set(call.index, item);
    return [...frames, ...this.add(item)];
  }

  private addArguments(index: number, text: string): Frame[] {
    const item = this.calls.get(index);
    if (item === undefined) throw new TitoError("upstream_invalid", `arguments for call ${index}, which never began`);
    item.arguments += text;
    if (text === "" || item.shape?.kind === "custom") return [];
    return [this.frame("response.function_call_arguments.delta", { ...this.place(item), delta: text })];
  }

  private finish(event: ReplyEvent & { type: "finish" }): Frame[] {
    const last = this.items.at(-1);
    const cut = event.reason === "length";
    const frames = this.items
      .filter((item) => !this.finished.has(item))
      .flatMap((item) => this.finishItem(item, cut && item === last ? "incomplete" : "completed"));
    this.held = true;
    const status = cut ? "incomplete" : "completed";
    const output = this.items.map((item) => itemJson(item, cut && item === last ? "incomplete" : "completed"));
    const response = responseJson(this.knownHead(), status, { output, usage: event.usage, finish: event.reason });
    return [...frames, this.frame(`response.${status}`, { response })];
  }

  private add(item: OutputItem): Frame[] {
    this.items.push(item);
    const index = this.items.length - 1;
    this.places.set(item, index);
    return [this.frame("response.output_item.added", { output_index: index, item: itemJson(item, "in_progress") })];
  }

  /** Only the last item can be a text that goes on: each new one finishes it. */
  private finishTexts(): Frame[] {
    const last = this.items.at(-1);
    if (last === undefined || last.kind === "call" || this.finished.has(last)) return [];
    return this.finishItem(last, "completed");
  }

  private finishItem(item: OutputItem, status: "completed" | "incomplete"): Frame[] {
    this.finished.add(item);
    const frames = this.doneFrames(item);
    if (item.kind !== "reasoning") this.held = true;
    const index = this.places.get(item)!;
    return [...frames, this.frame("response.output_item.done", { output_index: index, item: itemJson(item, status) })];
  }

  private doneFrames(item: OutputItem): Frame[] {
    const place = this.place(item);
    switch (item.kind) {
      case "reasoning":
        return [
          this.frame("response.reasoning_text.done", { ...place, content_index: 0, text: item.text }),
          this.frame("response.content_part.done", { ...place, content_index: 0, part: reasoningPart(item.text) }),
        ];
      case "message":
        return [
          this.frame("response.output_text.done", { ...place, content_index: 0, text: item.text, logprobs: [] }),
          this.frame("response.content_part.done", { ...place, content_index: 0, part: textPart(item.text) }),
        ];
      case "call": {
        if (item.shape?.kind !== "custom") {
          const name = item.shape?.name ?? item.name;
          return [this.frame("response.function_call_arguments.done", { ...place, name, arguments: item.arguments })];
        }
        const input = customInput(item.arguments);
        return [
          this.frame("response.custom_tool_call_input.delta", { ...place, delta: input }),
          this.frame("response.custom_tool_call_input.done", { ...place, input }),
        ];
      }
    }
  }

  private place(item: OutputItem): { item_id: string; output_index: number } {
    return { item_id: item.id, output_index: this.places.get(item)! };
  }

  private knownHead(): ResponseHead {
    if (this.head === null) throw new TitoError("internal", "a reply went on before its start event");
    return this.head;
  }

  private frame(type: string, fields: Record<string, unknown>): Frame {
    const data = JSON.stringify({ type, sequence_number: this.sequence, ...fields });
    this.sequence += 1;
    return { text: `event: ${type}\ndata: ${data}\n\n`, held: this.held };
  }
}
