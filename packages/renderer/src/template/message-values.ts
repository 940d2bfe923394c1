/**
 * Messages and tools as values for a template: text guarded, JSON read without loss, equal messages the same object every time,
 * so that later renders recognise them without comparing text.
 */
import { type AnyRuntimeValue, ArrayValue, convertToRuntimeValues, type ObjectValue } from "@huggingface/jinja";
import { type Message, TitoError, type ToolCall, type ToolDefinition } from "@tito/format";
import { PieceCache } from "../tokenizer/piece-cache.js";
import type { ValueGuard } from "../tokenizer/value-guard.js";
import { type JsonValue, tryLosslessJson } from "./lossless-json.js";

/** How a family's template wants its messages. */
export interface MessageRules {
  /** Tool-call arguments as a mapping, or as the JSON text itself. */
  arguments: "object" | "string";
  /** What stands for null, absent and (with `null_with_calls`) empty content. */
  empty_content: "empty" | "null_with_calls";
  /** Kimi K2 names calls by function and place instead of by the harness's id. */
  call_ids: "as_given" | "positional";
}

interface Interned {
  message: Message;
  call_id: string | undefined;
  value: ObjectValue;
}

const INTERNED_UNITS_MAX = 64 * 1024 * 1024;
const BUCKET_MAX = 64;
/** Conversations whose beginnings are compared first. */
const RECENT_MAX = 16;

/** What a bucket's newest message holds; the older ones were counted when they came. */
function bucketUnits(key: string, bucket: readonly Interned[]): number {
  const message = bucket[0]?.message;
  const calls = message?.tool_calls?.reduce((sum, call) => sum + call.arguments.length, 0) ?? 0;
  return key.length + (contentText(message?.content)?.length ?? 0) + (message?.reasoning?.length ?? 0) + calls;
}

/** The text of content, `separator` between its parts. @throws TitoError `unsupported` for anything but text. */
export function contentText(content: Message["content"], separator = "\n"): string | null {
  if (content === null || content === undefined || typeof content === "string") return content ?? null;
  return content
    .map((part) => {
      if (part.type === "text") return part.text;
      throw new TitoError(
        "unsupported",
        `a message holds a part of kind ${part.kind}; this renderer renders text only`,
        {
          hint: "Use --renderer engine for models that take anything but text.",
        },
      );
    })
    .join(separator);
}

export class MessageValues {
  readonly #rules: MessageRules;
  readonly #guard: ValueGuard;
  readonly #messages = new PieceCache<Interned[]>(INTERNED_UNITS_MAX, bucketUnits);
  #recent: (readonly Interned[])[] = [];
  readonly #tools = new PieceCache<ArrayValue>(INTERNED_UNITS_MAX / 16);

  constructor(rules: MessageRules, guard: ValueGuard) {
    this.#rules = rules;
    this.#guard = guard;
  }

  /** The conversation's messages; those that an earlier conversation began with are compared in place, the others looked up. */
  messages(messages: readonly Message[]): ArrayValue {
    const callIds = this.#callIds(messages);
    const interned = this.#longestBeginning(messages, callIds);
    for (let i = interned.length; i < messages.length; i++) interned.push(this.#intern(messages[i]!, callIds[i]));
    // A conversation that went on takes the place of its own beginning.
    const others = this.#recent.filter((recent) => !recent.every((known, i) => known === interned[i]));
    this.#recent = [interned, ...others].slice(0, RECENT_MAX);
    return new ArrayValue(interned.map(({ value }) => value));
  }

  #callIds(messages: readonly Message[]): (string | undefined)[] {
    if (this.#rules.call_ids === "as_given") return messages.map((message) => message.tool_call_id);
    const positional = new Map<string, string>();
    return messages.map((message) => {
      message.tool_calls?.forEach((call, i) => {
        positional.set(call.id, `functions.${call.name}:${i}`);
      });
      return positional.get(message.tool_call_id ?? "") ?? message.tool_call_id;
    });
  }

  /** What is known of the conversation's beginning. Equal messages are one object: conversations that begin alike are compared once. */
  #longestBeginning(messages: readonly Message[], callIds: readonly (string | undefined)[]): Interned[] {
    const beginning: Interned[] = [];
    let alike = this.#recent;
    for (let i = 0; i < messages.length && alike.length > 0; i++) {
      const known = alike[0]![i];
      const found = isKnown(known, messages[i]!, callIds[i])
        ? known
        : alike.find((recent) => isKnown(recent[i], messages[i]!, callIds[i]))?.[i];
      if (found === undefined) break;
      beginning.push(found);
      if (alike.length > 1) alike = alike.filter((recent) => recent[i] === found);
    }
    return beginning;
  }

  /** The tools in OpenAI's form, or null when there are none. */
  tools(tools: readonly ToolDefinition[]): AnyRuntimeValue {
    if (tools.length === 0) return convertToRuntimeValues(null);
    const key = JSON.stringify(tools);
    const known = this.#tools.get(key);
    if (known !== undefined) return known;
    const value = convertToRuntimeValues(tools.map((tool) => this.#tool(tool))) as ArrayValue;
    this.#tools.set(key, value);
    return value;
  }

  #intern(message: Message, callId: string | undefined): Interned {
    const key = bucketKey(message);
    const bucket = this.#messages.get(key) ?? [];
    const found = bucket.find((known) => isKnown(known, message, callId));
    if (found !== undefined) return found;
    const value = convertToRuntimeValues(this.#message(message, callId)) as ObjectValue;
    const interned = { message, call_id: callId, value };
    this.#messages.set(key, [interned, ...bucket].slice(0, BUCKET_MAX));
    return interned;
  }

  #message(message: Message, callId: string | undefined): JsonValue {
    const calls = message.tool_calls ?? [];
    const text = contentText(message.content) ?? "";
    const empty = text === "" && calls.length > 0 && this.#rules.empty_content === "null_with_calls";
    const object = new Map<string, JsonValue>([
      ["role", message.role],
      ["content", empty ? null : this.#guard.protect(text)],
    ]);
    if (message.reasoning !== undefined) object.set("reasoning_content", this.#guard.protect(message.reasoning));
    if (calls.length > 0)
      object.set(
        "tool_calls",
        calls.map((call, i) => this.#call(call, i)),
      );
    if (callId !== undefined) object.set("tool_call_id", this.#guard.protect(callId));
    if (message.name !== undefined) object.set("name", this.#guard.protect(message.name));
    return object;
  }

  #call(call: ToolCall, index: number): JsonValue {
    const id = this.#rules.call_ids === "positional" ? `functions.${call.name}:${index}` : call.id;
    const fn = new Map<string, JsonValue>([
      ["name", this.#guard.protect(call.name)],
      ["arguments", this.#arguments(call.arguments)],
    ]);
    return new Map<string, JsonValue>([
      ["id", this.#guard.protect(id)],
      ["type", "function"],
      ["function", fn],
    ]);
  }

  /** Arguments that are no JSON object are none, as in vLLM: most templates can only print a mapping. */
  #arguments(text: string): JsonValue {
    if (this.#rules.arguments === "string") return this.#guard.protect(text);
    const value = tryLosslessJson(text);
    return value instanceof Map ? this.#guardJson(value) : new Map();
  }

  #tool(tool: ToolDefinition): JsonValue {
    const fn = new Map<string, JsonValue>([["name", this.#guard.protect(tool.name)]]);
    if (tool.description !== undefined) fn.set("description", this.#guard.protect(tool.description));
    if (tool.parameters !== undefined)
      fn.set("parameters", this.#guardJson(tryLosslessJson(tool.parameters) ?? new Map()));
    if (tool.strict !== undefined) fn.set("strict", tool.strict);
    return new Map<string, JsonValue>([
      ["type", "function"],
      ["function", fn],
    ]);
  }

  #guardJson(value: JsonValue): JsonValue {
    if (typeof value === "string") return this.#guard.protect(value);
    if (Array.isArray(value)) return value.map((item) => this.#guardJson(item));
    if (value instanceof Map)
      return new Map([...value].map(([key, item]) => [this.#guard.protect(key), this.#guardJson(item)]));
    return value;
  }
}

/** A short text that few messages share: hashing whole contents at every turn would cost as much as rendering them. */
function bucketKey(message: Message): string {
  const content = typeof message.content === "string" ? message.content : "";
  const text = content === "" ? (message.tool_calls?.[0]?.arguments ?? message.reasoning ?? "") : content;
  const middle = text.length >> 1;
  return `${message.role}${text.length}:${text.slice(0, 24)}${text.slice(middle, middle + 24)}${text.slice(-24)}`;
}

const NO_CALLS: readonly ToolCall[] = [];

function isKnown(known: Interned | undefined, message: Message, callId: string | undefined): known is Interned {
  return known !== undefined && known.call_id === callId && sameMessage(known.message, message);
}

function sameMessage(a: Message, b: Message): boolean {
  if (a === b) return true;
  if (a.role !== b.role || a.reasoning !== b.reasoning || a.name !== b.name) return false;
  if (a.content !== b.content && (contentText(a.content) ?? "") !== (contentText(b.content) ?? "")) return false;
  const { tool_calls: left = NO_CALLS } = a;
  const { tool_calls: right = NO_CALLS } = b;
  return (
    left.length === right.length &&
    left.every((call, i) => {
      const other = right[i]!;
      return call.id === other.id && call.name === other.name && call.arguments === other.arguments;
    })
  );
}
