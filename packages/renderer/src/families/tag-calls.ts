/** Calls written as tags with one element per argument: Qwen3-Coder and Qwen3.5, GLM, MiniMax M2, DeepSeek V3.2 and V4. */
import type { ToolDefinition } from "@tito/format";
import { tryLosslessJson } from "../template/lossless-json.js";
import type { ParsedCall } from "./output.js";

/** Delimiters of a family's calls. White space between elements is free, inside a value nothing is. */
export interface TagGrammar {
  /** `name_end` empty: the name ends where the first parameter or the body's end is. */
  call: { open: string; name_end: string; close: string };
  /** `value_open` stands between key and value, after white space; empty where `key_end` does it all. */
  parameter: { open: string; key_end: string; value_open: string; close: string };
  /** The key is followed by `string="true|false">`: the model says itself whether the value is text. */
  typed: boolean;
}

class Scanner {
  #at = 0;
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  skipSpace(): void {
    while (/\s/.test(this.#text[this.#at] ?? "")) this.#at++;
  }

  atEnd(): boolean {
    return this.#at >= this.#text.length;
  }

  take(mark: string): boolean {
    if (!this.#text.startsWith(mark, this.#at)) return false;
    this.#at += mark.length;
    return true;
  }

  /** Text up to the next `mark`, which is taken too; null when there is none. */
  until(mark: string): string | null {
    const end = this.#text.indexOf(mark, this.#at);
    if (end < 0) return null;
    const text = this.#text.slice(this.#at, end);
    this.#at = end + mark.length;
    return text;
  }

  /** Text up to the next `mark` or the end; nothing of the mark is taken. */
  before(mark: string): string {
    const found = this.#text.indexOf(mark, this.#at);
    const end = found < 0 ? this.#text.length : found;
    const text = this.#text.slice(this.#at, end);
    this.#at = end;
    return text;
  }

  /** Text up to a `mark` that only white space separates from one of `followers`: a value may hold the mark itself. */
  untilFollowedBy(mark: string, followers: readonly string[]): string | null {
    for (let end = this.#text.indexOf(mark, this.#at); end >= 0; end = this.#text.indexOf(mark, end + 1)) {
      const rest = this.#text.slice(end + mark.length).trimStart();
      if (!followers.some((follower) => (follower === "" ? rest === "" : rest.startsWith(follower)))) continue;
      const text = this.#text.slice(this.#at, end);
      this.#at = end + mark.length;
      return text;
    }
    return null;
  }
}

/** All calls in `body`, or null when it does not follow the grammar to its end. */
export function readTagCalls(body: string, grammar: TagGrammar, tools: readonly ToolDefinition[]): ParsedCall[] | null {
  const scanner = new Scanner(body);
  const calls: ParsedCall[] = [];
  scanner.skipSpace();
  while (!scanner.atEnd()) {
    if (!scanner.take(grammar.call.open)) return null;
    const { name_end } = grammar.call;
    const name = (name_end === "" ? scanner.before(grammar.parameter.open) : scanner.until(name_end))?.trim();
    if (name === undefined || name === "") return null;
    const members = readParameters(scanner, grammar, parameterTypes(tools, name));
    if (members === null) return null;
    calls.push({ name, arguments: writeObject(members) });
    scanner.skipSpace();
  }
  return calls.length === 0 ? null : calls;
}

function readParameters(
  scanner: Scanner,
  grammar: TagGrammar,
  types: ReadonlyMap<string, string[]>,
): [string, string][] | null {
  const { parameter, call } = grammar;
  const members: [string, string][] = [];
  for (;;) {
    scanner.skipSpace();
    if (call.close === "" ? scanner.atEnd() : scanner.take(call.close)) return members;
    if (!scanner.take(parameter.open)) return null;
    const key = scanner.until(parameter.key_end);
    if (key === null) return null;
    if (parameter.value_open !== "") {
      scanner.skipSpace();
      if (!scanner.take(parameter.value_open)) return null;
    }
    const stated = grammar.typed ? scanner.until(">") : "";
    const value = scanner.untilFollowedBy(parameter.close, [parameter.open, call.close]);
    if (stated === null || value === null) return null;
    const json = grammar.typed ? statedJson(stated, value) : jsonOf(value, types.get(key) ?? ["string"]);
    if (json === null) return null;
    members.push([key, json]);
  }
}

const isJson = (text: string): boolean => tryLosslessJson(text) !== undefined || text.trim() === "null";

function statedJson(stated: string, value: string): string | null {
  if (stated === ' string="true"') return JSON.stringify(value);
  return stated === ' string="false"' && isJson(value) ? value : null;
}

/** The value as JSON text: by the schema's type where the text fits it, else as a string. Templates print some values as Python does. */
function jsonOf(value: string, types: readonly string[]): string {
  const python = new Map([
    ["None", "null"],
    ["True", "true"],
    ["False", "false"],
  ]).get(value);
  const text = python ?? value;
  const kind = kindOf(text);
  return kind !== null && types.includes(kind) ? text : JSON.stringify(value);
}

/** The JSON type that `text` reads as; null when it is no JSON value but a string. */
export function kindOf(text: string): string | null {
  if (text === "null") return "null";
  if (text === "true" || text === "false") return "boolean";
  const value = tryLosslessJson(text);
  if (value instanceof Map) return "object";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number" || typeof value === "bigint") return "integer";
  return typeof value === "object" ? "number" : null;
}

/** JSON Schema types by parameter name; a parameter without one takes anything that reads as JSON. */
function parameterTypes(tools: readonly ToolDefinition[], name: string): Map<string, string[]> {
  const types = new Map<string, string[]>();
  const schema = tryLosslessJson(tools.find((tool) => tool.name === name)?.parameters ?? "");
  const properties = schema instanceof Map ? schema.get("properties") : undefined;
  if (!(properties instanceof Map)) return types;
  for (const [key, property] of properties) {
    const type = property instanceof Map ? property.get("type") : undefined;
    const listed = typeof type === "string" ? [type] : Array.isArray(type) ? type.map(String) : [];
    if (listed.length === 0) listed.push("null", "boolean", "object", "array", "number");
    types.set(key, listed.includes("number") ? [...listed, "integer"] : listed);
  }
  return types;
}

/** An object in the spelling that Python's json gives and templates print. */
export function writeObject(members: readonly [string, string][]): string {
  return `{${members.map(([key, json]) => `${JSON.stringify(key)}: ${json}`).join(", ")}}`;
}
