/**
 * A JSON parser that forgets nothing: every value knows where it stands in the text.
 * Tool arguments and tool schemas are passed on as the harness spelled them (number spelling, key order, big integers, spaces),
 * which no JSON.parse and JSON.stringify pair keeps: integer-like keys are reordered and large numbers are rounded.
 * Grammar: RFC 8259. Of duplicate keys the last one wins, as in JSON.parse.
 */
import { TitoError } from "@tito/format";

/** Where a value stands: `source.slice(start, end)` is its exact spelling. */
interface Span {
  source: string;
  start: number;
  end: number;
}

/** A JSON value with its place. Objects are maps in the order of the text, so that no key can reach a prototype. */
export type JsonNode = Span &
  (
    | { type: "null" }
    | { type: "boolean"; value: boolean }
    | { type: "number"; value: number }
    | { type: "string"; value: string }
    | { type: "array"; items: JsonNode[] }
    | { type: "object"; members: Map<string, JsonNode> }
  );
export type JsonObjectNode = Extract<JsonNode, { type: "object" }>;

/** Deeper nesting than this is refused; no harness comes near it. */
const DEPTH_MAX = 128;

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const SPACE = /[ \t\n\r]*/y;

/**
 * Parses one JSON text.
 * @throws TitoError `bad_request` that names the offset of the first wrong character.
 */
export function parseJsonText(source: string): JsonNode {
  const cursor = new Cursor(source);
  const node = cursor.value(0);
  cursor.space();
  if (cursor.at < source.length) throw cursor.wrong("the end");
  return node;
}

/**
 * Decodes a request body as strict UTF-8 and parses it.
 * @throws TitoError `bad_request` when the bytes are not UTF-8 or not JSON.
 */
export function parseJsonBody(body: Uint8Array): JsonNode {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(body);
  } catch (cause) {
    throw new TitoError("bad_request", "the request body is not valid UTF-8", { cause });
  }
  return parseJsonText(text);
}

/** The exact spelling of a value, as a string of its own (it does not keep the whole body alive). */
export function rawText(node: JsonNode): string {
  return Buffer.from(node.source.slice(node.start, node.end), "utf8").toString("utf8");
}

class Cursor {
  at = 0;
  constructor(private readonly source: string) {}

  wrong(expected: string): TitoError {
    const found = this.at < this.source.length ? JSON.stringify(this.source[this.at]) : "the end";
    return new TitoError("bad_request", `invalid JSON at offset ${this.at}: expected ${expected}, found ${found}`);
  }

  space(): void {
    SPACE.lastIndex = this.at;
    SPACE.test(this.source);
    this.at = SPACE.lastIndex;
  }

  value(depth: number): JsonNode {
    if (depth > DEPTH_MAX) {
      throw new TitoError("bad_request", `invalid JSON at offset ${this.at}: nested deeper than ${DEPTH_MAX} levels`);
    }
    this.space();
    const start = this.at;
    switch (this.source[start]) {
      case "{":
        return { type: "object", members: this.members(depth), source: this.source, start, end: this.at };
      case "[":
        return { type: "array", items: this.items(depth), source: this.source, start, end: this.at };
      case '"':
        return { type: "string", value: this.string(), source: this.source, start, end: this.at };
      case "t":
        return { type: "boolean", value: this.word("true", true), source: this.source, start, end: this.at };
      case "f":
        return { type: "boolean", value: this.word("false", false), source: this.source, start, end: this.at };
      case "n":
        this.word("null", null);
        return { type: "null", source: this.source, start, end: this.at };
      default:
        return { type: "number", value: this.number(), source: this.source, start, end: this.at };
    }
  }

  private word<T>(word: string, value: T): T {
    if (!this.source.startsWith(word, this.at)) throw this.wrong("a value");
    this.at += word.length;
    return value;
  }

  private number(): number {
    NUMBER.lastIndex = this.at;
    const match = NUMBER.exec(this.source);
    if (match === null) throw this.wrong("a value");
    this.at += match[0].length;
    return Number(match[0]);
  }

  private string(): string {
    const start = this.at;
    let quote = start;
    for (;;) {
      quote = this.source.indexOf('"', quote + 1);
      if (quote < 0) {
        this.at = this.source.length;
        throw this.wrong("a closing quote");
      }
      let slashes = 0;
      while (this.source[quote - 1 - slashes] === "\\") slashes += 1;
      if (slashes % 2 === 0) break;
    }
    this.at = quote + 1;
    try {
      // JSON.parse checks the escapes and makes a string that does not keep the body alive.
      return JSON.parse(this.source.slice(start, this.at)) as string;
    } catch (cause) {
      throw new TitoError("bad_request", `invalid JSON string at offset ${start}`, { cause });
    }
  }

  private items(depth: number): JsonNode[] {
    const items: JsonNode[] = [];
    this.at += 1;
    this.space();
    if (this.source[this.at] === "]") {
      this.at += 1;
      return items;
    }
    for (;;) {
      items.push(this.value(depth + 1));
      if (this.separatorOrEnd("]")) return items;
    }
  }

  private members(depth: number): Map<string, JsonNode> {
    const members = new Map<string, JsonNode>();
    this.at += 1;
    this.space();
    if (this.source[this.at] === "}") {
      this.at += 1;
      return members;
    }
    for (;;) {
      this.space();
      if (this.source[this.at] !== '"') throw this.wrong("a key");
      const key = this.string();
      this.space();
      if (this.source[this.at] !== ":") throw this.wrong('":"');
      this.at += 1;
      members.set(key, this.value(depth + 1));
      if (this.separatorOrEnd("}")) return members;
    }
  }

  private separatorOrEnd(end: "]" | "}"): boolean {
    this.space();
    const found = this.source[this.at];
    if (found !== "," && found !== end) throw this.wrong(`"," or "${end}"`);
    this.at += 1;
    return found === end;
  }
}
