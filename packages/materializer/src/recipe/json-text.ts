/** JSON as other programs write it. Pure. */

const BOM = "\uFEFF";
/** A string, which is passed over, or a number that JSON does not have and Python writes nevertheless. */
const STRING_OR_NON_FINITE = /"(?:[^"\\]|\\.)*"|-?\b(?:NaN|Infinity)\b/g;
const SURROGATE_ESCAPE = /\\u[dD][89a-fA-F]/;

/**
 * Parses JSON. A byte order mark is passed over; NaN and infinities are null, because they are unknown numbers and must not cost their neighbours;
 * half a surrogate pair becomes U+FFFD, as in every UTF-8 output. Throws `SyntaxError`.
 */
export function parseJsonText(text: string): unknown {
  const body = text.startsWith(BOM) ? text.slice(1) : text;
  const reviver = SURROGATE_ESCAPE.test(body) ? wellFormed : finite;
  try {
    return JSON.parse(body, reviver);
  } catch (error) {
    const plain = body.replace(STRING_OR_NON_FINITE, (match) => (match.startsWith('"') ? match : "null"));
    if (plain === body) throw error;
    return JSON.parse(plain, reviver);
  }
}

/** 1e999 is read as infinity. */
function finite(_key: string, value: unknown): unknown {
  return typeof value === "number" && !Number.isFinite(value) ? null : value;
}

function wellFormed(key: string, value: unknown): unknown {
  return typeof value === "string" ? Buffer.from(value).toString() : finite(key, value);
}
