/** Llama 3.x: one call as a JSON object that is the whole turn; anything else is content. */
import { readJsonCall } from "./json-slices.js";
import type { Parse } from "./output.js";
import { holdsMark, isToken, rawText } from "./spans.js";

export const PYTHON_TAG = "<|python_tag|>";

export const llama3: Parse = (spans) => {
  const tagged = isToken(spans[0], PYTHON_TAG);
  const body = tagged ? spans.slice(1) : spans;
  const call = readJsonCall(rawText(body), ["parameters", "arguments"]);
  if (call !== null) return { reasoning: null, content: "", calls: [call], malformed: holdsMark(body) };
  return { reasoning: null, content: rawText(spans), calls: [], malformed: holdsMark(spans) };
};
