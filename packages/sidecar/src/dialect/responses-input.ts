/** Input items of a Responses request → messages. Items of one assistant turn become one message again. */
import type { Message, ToolCall } from "@tito/format";
import { TitoError } from "@tito/format";
import { Fields, unsupported } from "../json/fields.js";
import { completeCallIds } from "./call-ids.js";
import { keyOfItemId, unpackReasoning } from "./responses-marker.js";
import { namespacedName } from "./responses-tools.js";
import { readTextContent } from "./text-content.js";

export interface ResponsesInput {
  messages: Message[];
  ignored: string[];
}

/** @throws TitoError `bad_request` or `unsupported` that names the item. */
export function readInput(fields: Fields, instructions: string | null): ResponsesInput {
  const turns = new TurnBuilder();
  if (instructions !== null) turns.plain({ role: "system", content: instructions });
  const input = fields.value("input");
  if (input === null) throw new TitoError("bad_request", "input is missing");
  if (input.type === "string") {
    turns.plain({ role: "user", content: input.value });
    return turns;
  }
  if (input.type !== "array" || input.items.length === 0)
    throw new TitoError("bad_request", "input must be a string or a list of at least one item");
  for (const [index, node] of input.items.entries()) readItem(Fields.of(node, `input[${index}]`), turns);
  return { messages: completeCallIds(turns.messages), ignored: turns.ignored };
}

function readItem(item: Fields, turns: TurnBuilder): void {
  const type = item.string("type") ?? "message";
  const key = keyOfItemId(item.string("id"));
  switch (type) {
    case "message":
      readMessage(item, key, turns);
      break;
    case "reasoning":
      turns.reasoning(key, readReasoning(item, turns.ignored));
      break;
    case "function_call": {
      const name = item.requiredString("name");
      const namespace = item.string("namespace");
      turns.call(key, {
        id: item.string("call_id") ?? "",
        name: namespace === null ? name : namespacedName(namespace, name),
        arguments: item.string("arguments") ?? "",
      });
      break;
    }
    case "custom_tool_call": {
      const call = { id: item.string("call_id") ?? "", name: item.requiredString("name") };
      turns.call(key, { ...call, arguments: JSON.stringify({ input: item.string("input") ?? "" }) });
      break;
    }
    case "function_call_output":
    case "custom_tool_call_output":
      turns.output(item.string("call_id") ?? "", readContent(item, "output"));
      break;
    case "item_reference":
      throw unsupported(item.where, "items are not stored here; have the harness send them whole (store: false)");
    default:
      throw unsupported(item.where, `an input item of type ${type} cannot be given to the policy`);
  }
}

function readMessage(item: Fields, key: string | null, turns: TurnBuilder): void {
  const role = item.requiredString("role");
  const content = readContent(item, "content");
  switch (role) {
    case "assistant":
      turns.content(
        key,
        typeof content === "string" ? content : content.map((part) => ("text" in part ? part.text : "")).join(""),
      );
      break;
    case "user":
      turns.plain({ role, content });
      break;
    case "system":
    case "developer":
      turns.plain({ role: "system", content });
      break;
    default:
      throw new TitoError("bad_request", `${item.path("role")}: ${JSON.stringify(role)} is not a role of this API`);
  }
}

function readContent(item: Fields, key: string): NonNullable<Message["content"]> {
  return readTextContent(item.value(key), item.path(key), (part, type) => {
    if (type === "input_text" || type === "output_text" || type === "text") return part.requiredString("text");
    return type === "refusal" ? part.requiredString("refusal") : null;
  });
}

/** The packed text first, because harnesses drop or shorten the readable one; text of other servers as far as it is readable. */
function readReasoning(item: Fields, ignored: string[]): string {
  const encrypted = item.string("encrypted_content");
  const packed = unpackReasoning(encrypted);
  if (packed !== null) return packed;
  if (encrypted !== null) ignored.push(item.path("encrypted_content"));
  const texts = item.objects("content").map((part) => part.requiredString("text"));
  const summary = item.objects("summary").map((part) => part.requiredString("text"));
  return texts.length > 0 ? texts.join("") : summary.join("\n\n");
}

/**
 * Puts reasoning, text and calls back into the assistant turn they came from.
 * Ids of ours say which response an item belongs to. Without them a turn ends where its order (reasoning, text, calls) would run
 * backwards, and at every other item. A completed item of a response that broke off stays a turn of its own.
 */
class TurnBuilder implements ResponsesInput {
  readonly messages: Message[] = [];
  readonly ignored: string[] = [];
  private open: { key: string | null; message: Message; answered: boolean } | null = null;

  plain(message: Message): void {
    this.open = null;
    this.messages.push(message);
  }

  output(callId: string, content: NonNullable<Message["content"]>): void {
    if (this.open !== null) this.open.answered = true;
    this.messages.push({ role: "tool", tool_call_id: callId, content });
  }

  reasoning(key: string | null, text: string): void {
    const turn = this.turn(
      key,
      (message) => message.content === null && message.tool_calls === undefined && message.reasoning === undefined,
    );
    if (text !== "") turn.reasoning = (turn.reasoning ?? "") + text;
  }

  content(key: string | null, text: string): void {
    const turn = this.turn(key, (message) => message.content === null && message.tool_calls === undefined);
    turn.content = typeof turn.content === "string" ? turn.content + text : text;
  }

  call(key: string | null, call: ToolCall): void {
    const turn = this.turn(key, () => true);
    turn.tool_calls = [...(turn.tool_calls ?? []), call];
  }

  private turn(key: string | null, fits: (message: Message) => boolean): Message {
    const open = this.open;
    if (open !== null) {
      const known = key !== null && open.key !== null;
      if (known ? key === open.key : !open.answered && fits(open.message)) {
        open.key ??= key;
        return open.message;
      }
    }
    const message: Message = { role: "assistant", content: null };
    this.open = { key, message, answered: false };
    this.messages.push(message);
    return message;
  }
}
