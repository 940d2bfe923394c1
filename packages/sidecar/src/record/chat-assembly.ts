/**
 * The whole chat body that a stream of chunks adds up to. An unstreamed call is streamed upstream, so that what was sampled before an abort is known;
 * the harness gets one body all the same. What the sidecar does not know of (service tier, fingerprint, stop reason) keeps its text.
 */

import type { ReasoningKey } from "../dialect/chat-reply.js";
import { assembleMessage } from "../dialect/message.js";
import type { ReplyEvent } from "../dialect/neutral.js";
import { editObject, findSlice, sliceArray, sliceObject, sliceText } from "../json/slices.js";

/** Members of a chunk's choice that are of that chunk alone. */
const OF_THE_CHUNK = ["delta", "logprobs", "token_ids"];

export class ChatAssembly {
  private first: string | null = null;
  private last: string | null = null;
  private usage = "null";
  private reasoningKey: ReasoningKey = "reasoning_content";
  private readonly logprobs: string[] = [];
  private readonly tokenIds: string[] = [];

  /** `kept`: which evidence the harness asked for itself. */
  constructor(private readonly kept: { logprobs: boolean; tokenIds: boolean }) {}

  add(raw: string, chunk: { reasoningKey: ReasoningKey | null }): void {
    this.first ??= raw;
    if (chunk.reasoningKey !== null) this.reasoningKey = chunk.reasoningKey;
    const top = sliceObject(raw);
    const usage = findSlice(top, "usage");
    if (usage !== undefined) this.usage = sliceText(raw, usage);
    const choices = findSlice(top, "choices");
    const [item] = choices === undefined || raw[choices.valueStart] !== "[" ? [] : sliceArray(raw, choices.valueStart);
    if (item === undefined) return;
    const choice = raw.slice(item.start, item.end);
    this.last = choice;
    if (this.kept.logprobs) append(this.logprobs, itemsAt(choice, ["logprobs", "content"]));
    if (this.kept.tokenIds) append(this.tokenIds, itemsAt(choice, ["token_ids"]));
  }

  /** Null when no chunk came. The finish reason is the engine's. */
  body(events: readonly ReplyEvent[]): string | null {
    if (this.first === null || this.last === null) return null;
    const choice = new Map<string, string | null>(OF_THE_CHUNK.map((name) => [name, null]));
    choice.set("message", this.message(events));
    choice.set("logprobs", this.kept.logprobs ? `{"content":[${this.logprobs.join(",")}]}` : "null");
    if (this.kept.tokenIds) choice.set("token_ids", `[${this.tokenIds.join(",")}]`);
    return editObject(
      this.first,
      new Map([
        ["object", '"chat.completion"'],
        ["choices", `[${editObject(this.last, choice)}]`],
        ["usage", this.usage],
      ]),
    );
  }

  private message(events: readonly ReplyEvent[]): string {
    const { role, content, reasoning, tool_calls } = assembleMessage(events);
    return JSON.stringify({
      role,
      content,
      refusal: null,
      ...(reasoning === undefined ? {} : { [this.reasoningKey]: reasoning }),
      ...(tool_calls === undefined
        ? {}
        : {
            tool_calls: tool_calls.map(({ id, name, arguments: text }) => ({
              id,
              type: "function",
              function: { name, arguments: text },
            })),
          }),
    });
  }
}

/** One by one: a call takes no more arguments than fit on the stack. */
function append(into: string[], items: readonly string[]): void {
  for (const item of items) into.push(item);
}

/** Items of the array at a path of members; none where there is no array. */
function itemsAt(text: string, path: readonly string[]): string[] {
  let at = 0;
  for (const name of path) {
    if (text[at] !== "{") return [];
    const slice = findSlice(sliceObject(text, at), name);
    if (slice === undefined) return [];
    at = slice.valueStart;
  }
  return text[at] === "[" ? sliceArray(text, at).map((item) => text.slice(item.start, item.end)) : [];
}
