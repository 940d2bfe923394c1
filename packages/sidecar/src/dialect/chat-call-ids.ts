/** A chat body whose calls and results have ids where it had none: engines refuse one without. Everything else keeps its bytes. */
import type { Message } from "@tito/format";
import {
  type CutObject,
  cutObject,
  editObject,
  findSlice,
  sliceArray,
  sliceObject,
  sliceText,
} from "../json/slices.js";

/** `messages`: those of the body, completed. */
export function fillCallIds(body: CutObject, messages: readonly Message[]): CutObject {
  const { text, slices } = body;
  const list = findSlice(slices, "messages");
  if (list === undefined) return body;
  let out = "";
  let from = list.valueStart;
  for (const [place, { start, end }] of sliceArray(text, list.valueStart).entries()) {
    const message = messages[place]!;
    if (message.tool_calls === undefined && message.role !== "tool") continue;
    const edits = editsOf(text.slice(start, end), message);
    if (edits.size === 0) continue;
    out += text.slice(from, start) + editObject(text.slice(start, end), edits);
    from = end;
  }
  if (from === list.valueStart) return body;
  const edited = new Map([["messages", out + text.slice(from, list.valueEnd)]]);
  return cutObject(editObject(text, edited, slices));
}

function editsOf(source: string, message: Message): Map<string, string> {
  const slices = sliceObject(source);
  const edits = new Map<string, string>();
  const result = findSlice(slices, "tool_call_id");
  const isNamed = result !== undefined && isGiven(sliceText(source, result));
  if (message.role === "tool" && !isNamed && message.tool_call_id)
    edits.set("tool_call_id", JSON.stringify(message.tool_call_id));
  const calls = findSlice(slices, "tool_calls");
  if (calls === undefined || source[calls.valueStart] !== "[") return edits;
  let out = "";
  let from = calls.valueStart;
  for (const [index, { start, end }] of sliceArray(source, calls.valueStart).entries()) {
    const call = source.slice(start, end);
    const id = findSlice(sliceObject(call), "id");
    if (id !== undefined && isGiven(sliceText(call, id))) continue;
    out +=
      source.slice(from, start) + editObject(call, new Map([["id", JSON.stringify(message.tool_calls![index]!.id)]]));
    from = end;
  }
  if (from !== calls.valueStart) edits.set("tool_calls", out + source.slice(from, calls.valueEnd));
  return edits;
}

const isGiven = (text: string): boolean => text !== "null" && text !== '""';
