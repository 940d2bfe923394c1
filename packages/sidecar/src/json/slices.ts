/**
 * Cuts a JSON object or array into its members without parsing the values: what is passed on keeps its spelling byte for byte,
 * and an array of thousands of ids costs one scan. The scan is lexical: it accepts a superset of JSON (RFC 8259), because some
 * engines print NaN; callers that must know that a text is JSON parse it as well.
 */
import { TitoError } from "@tito/format";

/** One member of an object: the decoded key, and where key and value stand in the text. */
export interface Slice {
  key: string;
  keyStart: number;
  valueStart: number;
  valueEnd: number;
}

const SPACE = /[ \t\n\r]*/y;
const SCALAR_END = /[,\]}\s]/g;
const BRACKET_OR_QUOTE = /["[\]{}]/g;

/** Where the objects and arrays of one text end, by where they start: what was walked over once is not walked over again when it is cut itself. */
export type Ends = Map<number, number>;

/** Deeper ones are not noted: a reply's evidence holds thousands. */
const NOTED_DEPTH_MAX = 3;

/** Members of the object that `text` holds from `start` on, in the order of the text, duplicates included. */
export function sliceObject(text: string, start = 0, ends?: Ends): Slice[] {
  let at = skipSpace(text, start);
  if (text[at] !== "{") throw notJson(text, at, "an object");
  const slices: Slice[] = [];
  at = skipSpace(text, at + 1);
  while (text[at] !== "}") {
    const keyStart = at;
    if (text[at] !== '"') throw notJson(text, at, "a key");
    const keyEnd = skipString(text, at);
    at = skipSpace(text, keyEnd);
    if (text[at] !== ":") throw notJson(text, at, '":"');
    const valueStart = skipSpace(text, at + 1);
    const valueEnd = skipValue(text, valueStart, ends);
    slices.push({ key: decodeKey(text, keyStart, keyEnd), keyStart, valueStart, valueEnd });
    at = nextMember(text, valueEnd, "}");
  }
  return slices;
}

/** Start and end of each item of the array that `text` holds from `start` on. */
export function sliceArray(text: string, start = 0, ends?: Ends): { start: number; end: number }[] {
  let at = skipSpace(text, start);
  if (text[at] !== "[") throw notJson(text, at, "an array");
  const items: { start: number; end: number }[] = [];
  at = skipSpace(text, at + 1);
  while (text[at] !== "]") {
    const end = skipValue(text, at, ends);
    items.push({ start: at, end });
    at = nextMember(text, end, "]");
  }
  return items;
}

/** The value of the last member called `key`: of duplicates the last wins, as in JSON.parse. */
export function findSlice(slices: readonly Slice[], key: string): Slice | undefined {
  return slices.findLast((slice) => slice.key === key);
}

/** The exact spelling of a member's value. */
export function sliceText(text: string, slice: Slice): string {
  return text.slice(slice.valueStart, slice.valueEnd);
}

/**
 * Sets (JSON text) and removes (null) members of the object `text`; everything else keeps its bytes and its place.
 * Of a duplicate key that is set only the last stays. New members go to the end. `slices`: those of `text`, where they are known already.
 */
export function editObject(
  text: string,
  edits: ReadonlyMap<string, string | null>,
  slices: readonly Slice[] = sliceObject(text),
): string {
  const kept = slices.filter((slice) => {
    const edit = edits.get(slice.key);
    if (edit === undefined) return true;
    return edit !== null && findSlice(slices, slice.key) === slice;
  });
  const open = text.indexOf("{");
  const close = text.lastIndexOf("}");
  const head = text.slice(0, slices[0]?.keyStart ?? open + 1);
  const tail = text.slice(slices.at(-1)?.valueEnd ?? close);
  const parts = kept.map((slice, index) => {
    const before = slices[slices.indexOf(slice) - 1];
    const separator = index === 0 ? "" : before === undefined ? "," : text.slice(before.valueEnd, slice.keyStart);
    const value = edits.get(slice.key) ?? sliceText(text, slice);
    return separator + text.slice(slice.keyStart, slice.valueStart) + value;
  });
  const present = new Set(kept.map((slice) => slice.key));
  const added = [...edits]
    .filter(([key, value]) => value !== null && !present.has(key))
    .map(([key, value]) => `${JSON.stringify(key)}:${value}`);
  const body = [parts.join(""), ...added].filter((part) => part !== "").join(",");
  return head + body + tail;
}

/**
 * JSON.parse for what engines print: bare NaN and Infinity (not JSON, but seen) come out as strings of that spelling.
 * @throws SyntaxError when it is not JSON even so.
 */
export function parseEngineJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (!/NaN|Infinity/.test(text)) throw error;
    return JSON.parse(
      text.replace(/"(?:[^"\\]|\\.)*"|-?\bInfinity\b|\bNaN\b/g, (token) => (token[0] === '"' ? token : `"${token}"`)),
    );
  }
}

function nextMember(text: string, from: number, end: "]" | "}"): number {
  const at = skipSpace(text, from);
  if (text[at] === end) return at;
  if (text[at] !== ",") throw notJson(text, at, `"," or "${end}"`);
  const next = skipSpace(text, at + 1);
  if (text[next] === end || next >= text.length) throw notJson(text, next, "a value");
  return next;
}

function skipSpace(text: string, at: number): number {
  SPACE.lastIndex = at;
  SPACE.test(text);
  return SPACE.lastIndex;
}

function skipString(text: string, start: number): number {
  let quote = start;
  for (;;) {
    quote = text.indexOf('"', quote + 1);
    if (quote < 0) throw notJson(text, text.length, "a closing quote");
    let slashes = 0;
    while (text[quote - 1 - slashes] === "\\") slashes += 1;
    if (slashes % 2 === 0) return quote + 1;
  }
}

function skipValue(text: string, start: number, ends?: Ends): number {
  const first = text[start];
  if (first === '"') return skipString(text, start);
  if (first !== "{" && first !== "[") {
    SCALAR_END.lastIndex = start;
    const end = SCALAR_END.exec(text)?.index ?? text.length;
    if (end === start) throw notJson(text, start, "a value");
    return end;
  }
  const known = ends?.get(start);
  if (known !== undefined) return known;
  const open: number[] = [];
  let depth = 0;
  let at = start;
  for (;;) {
    BRACKET_OR_QUOTE.lastIndex = at;
    const found = BRACKET_OR_QUOTE.exec(text);
    if (found === null) throw notJson(text, text.length, "a closing bracket");
    if (found[0] === '"') {
      at = skipString(text, found.index);
      continue;
    }
    at = found.index + 1;
    if (found[0] === "{" || found[0] === "[") {
      depth += 1;
      if (depth <= NOTED_DEPTH_MAX) open.push(found.index);
      continue;
    }
    if (depth <= NOTED_DEPTH_MAX) ends?.set(open.pop()!, at);
    depth -= 1;
    if (depth === 0) return at;
  }
}

function decodeKey(text: string, start: number, end: number): string {
  const raw = text.slice(start, end);
  try {
    return raw.includes("\\") ? (JSON.parse(raw) as string) : raw.slice(1, -1);
  } catch {
    throw notJson(text, start, "a key");
  }
}

function notJson(text: string, at: number, expected: string): TitoError {
  const found = at < text.length ? JSON.stringify(text[at]) : "the end";
  return new TitoError("bad_request", `invalid JSON at offset ${at}: expected ${expected}, found ${found}`);
}
