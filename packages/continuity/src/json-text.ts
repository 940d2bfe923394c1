/**
 * Canonical JSON text for comparison: member order and spacing gone, strings by value, numbers by exact decimal value.
 * JSON.parse is not used for numbers because it loses digits: 10000000000000001 and 10000000000000000 must stay apart.
 */

/** Deeper values are compared as text. */
const DEPTH_MAX = 200;
/** Digits of an exponent beyond which a number is compared as text. */
const EXPONENT_DIGITS_MAX = 9;

const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const SPACE = /[ \t\n\r]*/y;

/** Two texts with equal canonical forms are the same JSON value (RFC 8259; of repeated names the last wins). Null when the text is not JSON. */
export function canonicalJson(text: string): string | null {
  const reader: Reader = { text, at: 0 };
  const value = readValue(reader, 0);
  if (value === null) return null;
  skipSpace(reader);
  return reader.at === text.length ? value : null;
}

/** True when both are the same JSON value, or the same text when either is not JSON. */
export function sameJson(a: string, b: string): boolean {
  if (a === b) return true;
  const left = canonicalJson(a);
  return left !== null && left === canonicalJson(b);
}

interface Reader {
  text: string;
  at: number;
}

function skipSpace(reader: Reader): void {
  SPACE.lastIndex = reader.at;
  SPACE.test(reader.text);
  reader.at = SPACE.lastIndex;
}

function readValue(reader: Reader, depth: number): string | null {
  if (depth > DEPTH_MAX) return null;
  skipSpace(reader);
  switch (reader.text[reader.at]) {
    case "{":
      return readObject(reader, depth);
    case "[":
      return readArray(reader, depth);
    case '"':
      return readString(reader);
    case "t":
      return readWord(reader, "true");
    case "f":
      return readWord(reader, "false");
    case "n":
      return readWord(reader, "null");
    default:
      return readNumber(reader);
  }
}

function readWord(reader: Reader, word: string): string | null {
  if (!reader.text.startsWith(word, reader.at)) return null;
  reader.at += word.length;
  return word;
}

function readNumber(reader: Reader): string | null {
  NUMBER.lastIndex = reader.at;
  const match = NUMBER.exec(reader.text);
  if (match === null) return null;
  reader.at = NUMBER.lastIndex;
  return canonicalNumber(match[0]);
}

/** A JSON number as sign, digits without zeros at either end, and power of ten. Zero has no sign. */
function canonicalNumber(text: string): string {
  const [mantissa = "", exponentText = "0"] = text.toLowerCase().split("e");
  if (exponentText.length > EXPONENT_DIGITS_MAX) return text;
  const negative = mantissa.startsWith("-");
  const [whole = "", fraction = ""] = (negative ? mantissa.slice(1) : mantissa).split(".");
  const digits = (whole + fraction).replace(/^0+/, "");
  if (digits === "") return "0";
  const short = digits.replace(/0+$/, "");
  const power = Number(exponentText) - fraction.length + digits.length - short.length;
  return `${negative ? "-" : ""}${short}e${power}`;
}

/** A string by value: escapes resolved, then written in one way. */
function readString(reader: Reader): string | null {
  const { text } = reader;
  let end = reader.at + 1;
  for (; ; end++) {
    end = text.indexOf('"', end);
    if (end < 0) return null;
    let slashes = 0;
    while (text[end - 1 - slashes] === "\\") slashes++;
    if (slashes % 2 === 0) break;
  }
  const raw = text.slice(reader.at, end + 1);
  reader.at = end + 1;
  try {
    return JSON.stringify(JSON.parse(raw));
  } catch {
    return null;
  }
}

function readArray(reader: Reader, depth: number): string | null {
  const parts: string[] = [];
  reader.at++;
  skipSpace(reader);
  if (reader.text[reader.at] === "]") {
    reader.at++;
    return "[]";
  }
  for (;;) {
    const value = readValue(reader, depth + 1);
    if (value === null) return null;
    parts.push(value);
    const next = readSeparator(reader, "]");
    if (next === null) return null;
    if (next === "]") return `[${parts.join(",")}]`;
  }
}

function readObject(reader: Reader, depth: number): string | null {
  const members = new Map<string, string>();
  reader.at++;
  skipSpace(reader);
  if (reader.text[reader.at] === "}") {
    reader.at++;
    return "{}";
  }
  for (;;) {
    skipSpace(reader);
    const name = reader.text[reader.at] === '"' ? readString(reader) : null;
    skipSpace(reader);
    if (name === null || reader.text[reader.at] !== ":") return null;
    reader.at++;
    const value = readValue(reader, depth + 1);
    if (value === null) return null;
    members.set(name, value);
    const next = readSeparator(reader, "}");
    if (next === null) return null;
    if (next === "}") break;
  }
  const sorted = [...members].sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${sorted.map(([name, value]) => `${name}:${value}`).join(",")}}`;
}

/** The comma or the closing bracket that follows a value. */
function readSeparator(reader: Reader, close: string): string | null {
  skipSpace(reader);
  const found = reader.text[reader.at];
  if (found !== "," && found !== close) return null;
  reader.at++;
  return found;
}
