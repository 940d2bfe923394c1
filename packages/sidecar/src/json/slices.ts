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

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const DIGIT_0 = 0x30;
const DIGIT_9 = 0x39;
const NUMBERS = /[\d,\s.eE+-]+/y;
/** An opening and a closing bracket of either kind, with the bit set in which the kinds differ. */
const OPEN = 0x7b;
const CLOSE = 0x7d;
/** How far into a string its end is looked for character by character. */
const NEAR_CHARS = 32;

/** The text of an object, cut into its members once for everybody who wants some of them. */
export interface CutObject {
  text: string;
  slices: readonly Slice[];
}

/** @throws TitoError `bad_request` when the text holds no object. */
export function cutObject(text: string): CutObject {
  return { text, slices: sliceObject(text) };
}

/** The exact spelling of a member's value; undefined where there is none. */
export function memberText({ text, slices }: CutObject, key: string): string | undefined {
  const slice = findSlice(slices, key);
  return slice === undefined ? undefined : sliceText(text, slice);
}

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
 * `place`: where the object stands, when `text` is longer.
 */
export function editObject(
  text: string,
  edits: ReadonlyMap<string, string | null>,
  slices: readonly Slice[] = sliceObject(text),
  place = { start: 0, end: text.length },
): string {
  const head = text.slice(place.start, slices[0]?.keyStart ?? text.indexOf("{", place.start) + 1);
  const tail = text.slice(slices.at(-1)?.valueEnd ?? text.lastIndexOf("}", place.end - 1), place.end);
  let body = "";
  let before: Slice | undefined;
  for (const slice of slices) {
    const edit = edits.get(slice.key);
    if (edit === undefined || (edit !== null && findSlice(slices, slice.key) === slice)) {
      if (body !== "") body += text.slice(before!.valueEnd, slice.keyStart);
      body +=
        edit === undefined
          ? text.slice(slice.keyStart, slice.valueEnd)
          : text.slice(slice.keyStart, slice.valueStart) + edit;
    }
    before = slice;
  }
  for (const [key, value] of edits) {
    if (value === null || findSlice(slices, key) !== undefined) continue;
    body += `${body === "" ? "" : ","}${JSON.stringify(key)}:${value}`;
  }
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

function skipSpace(text: string, from: number): number {
  let at = from;
  while (isSpace(text.charCodeAt(at))) at += 1;
  return at;
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}

function skipString(text: string, start: number): number {
  // Most strings are short; a long one is looked through natively.
  const near = Math.min(text.length, start + NEAR_CHARS);
  let at = start + 1;
  for (; at < near; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at + 1;
    if (code === BACKSLASH) at += 1;
  }
  for (let quote = at; ; quote += 1) {
    quote = text.indexOf('"', quote);
    if (quote < 0) throw notJson(text, text.length, "a closing quote");
    let slashes = 0;
    while (quote - slashes > at && text.charCodeAt(quote - 1 - slashes) === BACKSLASH) slashes += 1;
    if (slashes % 2 === 0) return quote + 1;
  }
}

function skipValue(text: string, start: number, ends?: Ends): number {
  const first = text[start];
  if (first === '"') return skipString(text, start);
  if (first !== "{" && first !== "[") {
    const end = skipScalar(text, start);
    if (end === start) throw notJson(text, start, "a value");
    return end;
  }
  const known = ends?.get(start);
  if (known !== undefined) return known;
  const open: number[] = [];
  let depth = 0;
  let at = start;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = skipString(text, at);
      continue;
    }
    at += 1;
    // [ and ], { and }: alike but for one bit.
    const bracket = code | 0x20;
    if (bracket === OPEN) {
      depth += 1;
      if (depth <= NOTED_DEPTH_MAX) open.push(at - 1);
      at = skipNumbers(text, at);
    } else if (bracket === CLOSE) {
      if (depth <= NOTED_DEPTH_MAX) ends?.set(open.pop()!, at);
      depth -= 1;
      if (depth === 0) return at;
    }
  }
  throw notJson(text, text.length, "a closing bracket");
}

/** Behind the numbers that an array begins with: thousands of ids are looked through natively. */
function skipNumbers(text: string, at: number): number {
  const code = text.charCodeAt(at);
  // At the end of the text the code is no number at all.
  if (!(code >= DIGIT_0 && code <= DIGIT_9)) return at;
  NUMBERS.lastIndex = at;
  NUMBERS.test(text);
  return NUMBERS.lastIndex;
}

/** The end of a number or a word. */
function skipScalar(text: string, start: number): number {
  let at = start;
  for (; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === COMMA || (code | 0x20) === CLOSE || isSpace(code)) break;
  }
  return at;
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
