/** MiniMax M3: calls as nested elements, every tag behind the namespace token; lists are elements called `item`, an absent value is no element. */
import type { ToolDefinition } from "@tito/format";
import { type JsonValue, tryLosslessJson } from "../template/lossless-json.js";
import type { Parse, ParsedCall, ParsedOutput } from "./output.js";
import { takeReasoning } from "./reasoning.js";
import { findToken, holdsMark, isToken, rawText, type Span } from "./spans.js";
import { kindOf, writeObject } from "./tag-calls.js";

export const M3_NAMESPACE = "]<]minimax[>[";
export const M3_THINK = { open: "<mm:think>", close: "</mm:think>" };

const DEPTH_MAX = 64;

/** A tag behind a namespace token, and the text up to the next one. */
interface Tag {
  closes: boolean;
  name: string;
  text: string;
}

type Value = string | [key: string, value: Value][];

/** Null when anything but a tag follows a namespace token. */
function readTags(spans: readonly Span[]): Tag[] | null {
  const tags: Tag[] = [];
  for (let at = 0; at < spans.length; ) {
    let end = at + 1;
    while (end < spans.length && !isToken(spans[end], M3_NAMESPACE)) end++;
    const [, slash, name, text] = /^<(\/?)([^>]+)>([\s\S]*)$/.exec(rawText(spans.slice(at + 1, end))) ?? [];
    if (name === undefined || text === undefined) return null;
    tags.push({ closes: slash === "/", name, text });
    at = end;
  }
  return tags;
}

class TagReader {
  #at = 0;
  readonly #tags: readonly Tag[];

  constructor(tags: readonly Tag[]) {
    this.#tags = tags;
  }

  /** Takes the next tag when it is `name` with nothing but white space behind it. */
  take(closes: boolean, name: string | RegExp): RegExpExecArray | true | null {
    const tag = this.#tags[this.#at];
    if (tag === undefined || tag.closes !== closes || tag.text.trim() !== "") return null;
    const match = typeof name === "string" ? tag.name === name || null : name.exec(tag.name);
    if (match !== null) this.#at++;
    return match;
  }

  atEnd(): boolean {
    return this.#at >= this.#tags.length;
  }

  /** Elements up to the next closing tag; null when one of them does not close. */
  elements(depth: number): [string, Value][] | null {
    const elements: [string, Value][] = [];
    for (let tag = this.#tags[this.#at]; tag !== undefined && !tag.closes; tag = this.#tags[this.#at]) {
      this.#at++;
      const children = depth < DEPTH_MAX ? this.elements(depth + 1) : null;
      const close = this.#tags[this.#at];
      if (children === null || close?.name !== tag.name || close.text !== "") return null;
      if (children.length > 0 && tag.text.trim() !== "") return null;
      this.#at++;
      elements.push([tag.name, children.length > 0 ? children : tag.text]);
    }
    return elements;
  }
}

const at = (schema: JsonValue | undefined, key: string): JsonValue | undefined =>
  schema instanceof Map ? schema.get(key) : undefined;

function typesOf(schema: JsonValue | undefined): string[] {
  const type = at(schema, "type");
  const listed = typeof type === "string" ? [type] : Array.isArray(type) ? type.map(String) : [];
  return listed.includes("number") ? [...listed, "integer"] : listed;
}

/** The value as JSON text, by its schema; where that says nothing, what reads as a number or a boolean is one. */
function jsonOf(value: Value, schema: JsonValue | undefined): string {
  const types = typesOf(schema);
  if (typeof value !== "string") {
    const list = types.length > 0 ? types.includes("array") : value.every(([key]) => key === "item");
    if (list) return `[${value.map(([, item]) => jsonOf(item, at(schema, "items"))).join(", ")}]`;
    return objectOf(value, schema);
  }
  if (value === "" && types.includes("array")) return "[]";
  if (value === "" && types.includes("object")) return "{}";
  const python = value === "True" ? "true" : value === "False" ? "false" : value;
  const kind = kindOf(python);
  const fits = types.length > 0 ? kind !== null && types.includes(kind) : kind !== "object" && kind !== "array";
  return kind !== null && fits ? python : JSON.stringify(value);
}

function objectOf(members: readonly [string, Value][], schema: JsonValue | undefined): string {
  const properties = at(schema, "properties");
  return writeObject(
    members.map(([key, value]) => [key, jsonOf(value, at(properties, key) ?? at(schema, "additionalProperties"))]),
  );
}

/** The calls of one block, or null when it does not follow the form to its end. */
function readCalls(spans: readonly Span[], tools: readonly ToolDefinition[]): ParsedCall[] | null {
  const tags = readTags(spans);
  const reader = new TagReader(tags ?? []);
  if (tags === null || reader.take(false, "tool_call") === null) return null;
  const calls: ParsedCall[] = [];
  while (reader.take(true, "tool_call") === null) {
    const opened = reader.take(false, /^invoke name="([^"]+)"$/);
    const members = opened === null ? null : reader.elements(0);
    if (opened === null || opened === true || members === null || reader.take(true, "invoke") === null) return null;
    const name = opened[1]!;
    const schema = tryLosslessJson(tools.find((tool) => tool.name === name)?.parameters ?? "");
    calls.push({ name, arguments: objectOf(members, schema) });
  }
  return calls.length > 0 && reader.atEnd() ? calls : null;
}

export const minimaxM3: Parse = (spans, context): ParsedOutput => {
  const { reasoning_open, tools } = context;
  // A turn without reasoning begins with the closing mark.
  const unthought = !reasoning_open && isToken(spans[0], M3_THINK.close);
  const { reasoning, rest, flawed } = unthought
    ? { reasoning: null, rest: spans.slice(1), flawed: false }
    : takeReasoning(spans, M3_THINK, context, (text) => text);
  const first = findToken(rest, M3_NAMESPACE);
  if (first < 0) return { reasoning, content: rawText(rest), calls: [], malformed: flawed || holdsMark(rest) };
  const calls = readCalls(rest.slice(first), tools);
  if (calls === null) return { reasoning, content: rawText(rest), calls: [], malformed: true };
  const before = rest.slice(0, first);
  return { reasoning, content: rawText(before), calls, malformed: flawed || holdsMark(before) };
};
