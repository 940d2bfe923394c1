/** A stretch of JSON text that means something by itself: a string with its quotes, a number, or one of `{}[]:,`. */
export interface JsonToken {
  text: string;
  /** Offset in the whole text. */
  start: number;
}

/**
 * The tokens of a JSON text, literals and white space left out. What is not valid JSON gives some tokens or others: parse it as well.
 * Strings are searched for their end, not matched, so that one of many megabytes costs no stack.
 */
export function* jsonTokens(json: string): Generator<JsonToken, void, void> {
  const next = /["{}[\]:,]|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
  for (let found = next.exec(json); found !== null; found = next.exec(json)) {
    const start = found.index;
    if (found[0] !== '"') {
      yield { text: found[0], start };
      continue;
    }
    next.lastIndex = stringEnd(json, start);
    yield { text: json.slice(start, next.lastIndex), start };
  }
}

/** The offset behind the string that opens at `start`. */
function stringEnd(json: string, start: number): number {
  for (let quote = json.indexOf('"', start + 1); quote >= 0; quote = json.indexOf('"', quote + 1)) {
    let backslashes = 0;
    while (json[quote - 1 - backslashes] === "\\") backslashes++;
    if (backslashes % 2 === 0) return quote + 1;
  }
  return json.length;
}
