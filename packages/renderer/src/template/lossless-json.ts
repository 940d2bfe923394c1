/**
 * JSON text to values for the template, as Python's json module reads it: key order kept (integer-like keys too), integers of any size,
 * `1.0` a float and `1` an integer.
 */
import { PyFloat } from "@huggingface/jinja";
import { TitoError } from "@tito/format";

export type JsonValue = null | boolean | number | bigint | string | PyFloat | JsonValue[] | Map<string, JsonValue>;

const DEPTH_MAX = 512;
const NUMBER = /-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/y;
const SPACE = /[ \t\n\r]*/y;
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON strings may not hold control characters; finding them is the point.
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;

class Reader {
  #at = 0;
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  document(): JsonValue {
    const value = this.#value(0);
    this.#skip();
    if (this.#at !== this.#text.length) this.#fail();
    return value;
  }

  members(): Map<string, string> | null {
    const raw = new Map<string, string>();
    this.#skip();
    if (this.#text[this.#at] !== "{") return null;
    this.#object(0, (key, from) => raw.set(key, this.#text.slice(from, this.#at)));
    this.#skip();
    return this.#at === this.#text.length ? raw : null;
  }

  #value(depth: number): JsonValue {
    if (depth > DEPTH_MAX) this.#fail();
    this.#skip();
    const char = this.#text[this.#at];
    if (char === "{") return this.#object(depth);
    if (char === "[") return this.#array(depth);
    if (char === '"') return this.#string();
    for (const [word, value] of WORDS) {
      if (this.#text.startsWith(word, this.#at)) {
        this.#at += word.length;
        return value;
      }
    }
    return this.#number();
  }

  #object(depth: number, onMember?: (key: string, from: number) => void): JsonValue {
    const object = new Map<string, JsonValue>();
    this.#at++;
    this.#skip();
    if (this.#take("}")) return object;
    do {
      this.#skip();
      const key = this.#string();
      this.#skip();
      if (!this.#take(":")) this.#fail();
      this.#skip();
      const from = this.#at;
      object.set(key, this.#value(depth + 1));
      onMember?.(key, from);
      this.#skip();
    } while (this.#take(","));
    if (!this.#take("}")) this.#fail();
    return object;
  }

  #array(depth: number): JsonValue {
    const array: JsonValue[] = [];
    this.#at++;
    this.#skip();
    if (this.#take("]")) return array;
    do {
      array.push(this.#value(depth + 1));
      this.#skip();
    } while (this.#take(","));
    if (!this.#take("]")) this.#fail();
    return array;
  }

  #string(): string {
    return JSON.parse(this.#match(STRING)[0]) as string;
  }

  #number(): JsonValue {
    const [text, fraction, exponent] = this.#match(NUMBER);
    if (fraction !== undefined || exponent !== undefined) return new PyFloat(Number(text));
    const integer = Number(text);
    return Number.isSafeInteger(integer) && !Object.is(integer, -0) ? integer : BigInt(text!);
  }

  #match(regex: RegExp): RegExpExecArray {
    regex.lastIndex = this.#at;
    const match = regex.exec(this.#text) ?? this.#fail();
    this.#at = regex.lastIndex;
    return match;
  }

  #skip(): void {
    this.#match(SPACE);
  }

  #take(char: string): boolean {
    if (this.#text[this.#at] !== char) return false;
    this.#at++;
    return true;
  }

  #fail(): never {
    throw new TitoError("bad_request", `not JSON at character ${this.#at}`);
  }
}

// Python's reader takes the last three too.
const WORDS: [string, JsonValue][] = [
  ["true", true],
  ["false", false],
  ["null", null],
  ["NaN", new PyFloat(Number.NaN)],
  ["Infinity", new PyFloat(Number.POSITIVE_INFINITY)],
  ["-Infinity", new PyFloat(Number.NEGATIVE_INFINITY)],
];

/** @throws TitoError `bad_request` with the place, when `text` is not JSON. */
function parseLosslessJson(text: string): JsonValue {
  return new Reader(text).document();
}

/** The value, or null when `text` is not JSON. (JSON `null` is reported as undefined.) */
export function tryLosslessJson(text: string): JsonValue | undefined {
  try {
    return parseLosslessJson(text) ?? undefined;
  } catch {
    return undefined;
  }
}

/** Raw text of each member of the JSON object that `text` is, by key, the last one winning; null when it is no JSON object. */
export function jsonMembers(text: string): Map<string, string> | null {
  try {
    return new Reader(text).members();
  } catch {
    return null;
  }
}
