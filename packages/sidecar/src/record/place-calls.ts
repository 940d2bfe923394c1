/** The tool calls of an engine's own chunk or body, with the ids and numbers that the harness needs: everything else keeps its bytes. */
import { editObject, findSlice, type Slice, sliceArray, sliceObject, sliceText } from "../json/slices.js";
import type { PlacedDelta } from "../sample/call-deltas.js";

/**
 * `members`: of the choice, in `raw`. `placed`: its calls, in order.
 * Returns the member that holds them and its new text; null where nothing has to change.
 */
export function placeCalls(
  raw: string,
  members: readonly Slice[],
  placed: readonly PlacedDelta[],
): { key: "delta" | "message"; text: string } | null {
  if (placed.length === 0) return null;
  const delta = findObject(raw, members, "delta");
  const holder = delta ?? findObject(raw, members, "message");
  if (holder === undefined) return null;
  const inner = sliceObject(raw, holder.valueStart);
  const calls = findSlice(inner, "tool_calls");
  if (calls === undefined || raw[calls.valueStart] !== "[") return null;
  let text = "";
  let from = calls.valueStart;
  const items = sliceArray(raw, calls.valueStart).filter(({ start }) => raw[start] === "{");
  for (const [position, item] of items.entries()) {
    const edits = editsOfCall(raw, item.start, placed[position], delta !== undefined);
    if (edits === null || edits.size === 0) continue;
    text += raw.slice(from, item.start) + editObject(raw.slice(item.start, item.end), edits);
    from = item.end;
  }
  if (from === calls.valueStart) return null;
  const edited = new Map([["tool_calls", text + raw.slice(from, calls.valueEnd)]]);
  return {
    key: delta === undefined ? "message" : "delta",
    text: editObject(sliceText(raw, holder), edited),
  };
}

function findObject(raw: string, members: readonly Slice[], key: string): Slice | undefined {
  const slice = findSlice(members, key);
  return slice !== undefined && raw[slice.valueStart] === "{" ? slice : undefined;
}

function editsOfCall(
  raw: string,
  start: number,
  placed: PlacedDelta | undefined,
  streamed: boolean,
): Map<string, string> | null {
  if (placed === undefined) return null;
  const slices = sliceObject(raw, start);
  const read = (key: string): string => {
    const slice = findSlice(slices, key);
    return slice === undefined ? "null" : sliceText(raw, slice);
  };
  const edits = new Map<string, string>();
  const id = JSON.stringify(placed.id);
  const told = read("id");
  const speaks = told !== "null" && told !== '""';
  if (told !== id && (placed.begins || speaks)) {
    edits.set("id", id);
    if (placed.begins && read("type") === "null") edits.set("type", '"function"');
  }
  if (streamed && read("index") !== String(placed.index)) edits.set("index", String(placed.index));
  return edits;
}
