/**
 * Reads the fields of a JSON object one by one, with the place in every error message, and remembers which were read:
 * what nobody read is what had no effect.
 */
import { TitoError } from "@tito/format";
import type { JsonNode, JsonObjectNode } from "./raw-json.js";

/** A view of one object of the request body. `where` is its path, "" at the top. Null counts as absent everywhere. */
export class Fields {
  private readonly read = new Set<string>();

  private constructor(
    private readonly node: JsonObjectNode,
    readonly where: string,
  ) {}

  /** @throws TitoError `bad_request` when the value is not an object. */
  static of(node: JsonNode, where: string): Fields {
    if (node.type !== "object") throw wrongType(where, "an object", node);
    return new Fields(node, where);
  }

  path(key: string): string {
    return this.where === "" ? key : `${this.where}.${key}`;
  }

  value(key: string): JsonNode | null {
    this.read.add(key);
    const node = this.node.members.get(key);
    return node === undefined || node.type === "null" ? null : node;
  }

  string(key: string): string | null {
    const node = this.value(key);
    if (node === null) return null;
    if (node.type !== "string") throw wrongType(this.path(key), "a string", node);
    return node.value;
  }

  requiredString(key: string): string {
    const value = this.string(key);
    if (value === null) throw new TitoError("bad_request", `${this.path(key)} is missing`);
    return value;
  }

  /** Of a tool that is offered: nothing can be called by an empty one. */
  requiredName(key: string): string {
    const value = this.requiredString(key);
    if (value === "") throw new TitoError("bad_request", `${this.path(key)} must not be empty`);
    return value;
  }

  boolean(key: string): boolean | null {
    const node = this.value(key);
    if (node === null) return null;
    if (node.type !== "boolean") throw wrongType(this.path(key), "true or false", node);
    return node.value;
  }

  number(key: string): number | null {
    const node = this.value(key);
    if (node === null) return null;
    if (node.type !== "number") throw wrongType(this.path(key), "a number", node);
    return node.value;
  }

  /** A whole number ≥ 1, such as a token limit. */
  count(key: string): number | null {
    const value = this.number(key);
    if (value !== null && (!Number.isSafeInteger(value) || value < 1)) {
      throw new TitoError("bad_request", `${this.path(key)} must be a whole number of at least 1`);
    }
    return value;
  }

  array(key: string): JsonNode[] | null {
    const node = this.value(key);
    if (node === null) return null;
    if (node.type !== "array") throw wrongType(this.path(key), "an array", node);
    return node.items;
  }

  strings(key: string): string[] {
    return (this.array(key) ?? []).map((node, index) => {
      if (node.type !== "string") throw wrongType(`${this.path(key)}[${index}]`, "a string", node);
      return node.value;
    });
  }

  objects(key: string): Fields[] {
    return (this.array(key) ?? []).map((node, index) => Fields.of(node, `${this.path(key)}[${index}]`));
  }

  object(key: string): Fields | null {
    const node = this.value(key);
    return node === null ? null : Fields.of(node, this.path(key));
  }

  /** Keys with a value that nobody read, in the order of the text. */
  unread(): string[] {
    return [...this.node.members]
      .filter(([key, node]) => node.type !== "null" && !this.read.has(key))
      .map(([key]) => key);
  }

  /** All keys, for objects that are told apart by what they hold. */
  keys(): string[] {
    return [...this.node.members.keys()];
  }
}

/** @returns the error for something a dialect allows and no chat engine can be told faithfully. */
export function unsupported(where: string, why: string): TitoError {
  return new TitoError("unsupported", `${where}: ${why}`);
}

function wrongType(where: string, expected: string, node: JsonNode): TitoError {
  return new TitoError("bad_request", `${where || "the request body"} must be ${expected}, not ${node.type}`);
}
