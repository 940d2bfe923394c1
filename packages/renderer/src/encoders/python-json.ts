/** JSON as Python's `json.dumps(value, ensure_ascii=False)` writes it: vendors' encoders print tools and arguments with it. */
import { convertToRuntimeValues, PyFloat } from "@huggingface/jinja";
import type { JsonValue } from "../template/lossless-json.js";

export interface JsonStyle {
  /** No spaces after commas and colons. */
  compact?: boolean;
  /** Applied to every string and key before it is written. */
  protect: (text: string) => string;
}

/** JSON.stringify would write lone surrogates as escapes; as UTF-8, which prompts are, they are U+FFFD. */
const quote = (text: string): string => JSON.stringify(text.replace(/\p{Surrogate}/gu, "\ufffd"));

/** Beyond the finite numbers json.dumps and str part ways: `Infinity` is `inf` elsewhere. */
function float(value: PyFloat): string {
  return Number.isFinite(value.value) ? convertToRuntimeValues(value).toString() : String(value.value);
}

export function pythonJson(value: JsonValue, style: JsonStyle): string {
  const [comma, colon] = style.compact === true ? [",", ":"] : [", ", ": "];
  if (value === null) return "null";
  if (typeof value === "string") return quote(style.protect(value));
  if (value instanceof PyFloat) return float(value);
  if (Array.isArray(value)) return `[${value.map((item) => pythonJson(item, style)).join(comma)}]`;
  if (value instanceof Map) {
    const members = [...value].map(([key, item]) => `${quote(style.protect(key))}${colon}${pythonJson(item, style)}`);
    return `{${members.join(comma)}}`;
  }
  return String(value);
}

/** Members of every object in the order of their keys' code points. */
export function sortedByKey(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(sortedByKey);
  if (!(value instanceof Map)) return value;
  const byKey = [...value].sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  return new Map(byKey.map(([key, item]) => [key, sortedByKey(item)]));
}
