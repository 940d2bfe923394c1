import { TitoError } from "@tito/format";
import type { Vocabulary } from "../model/vocabulary.js";
import type { ScriptReply } from "./script-schema.js";

/** The ids that a scripted answer consists of, the end-of-sequence token included when it ends with one. */
export function replyIds(reply: ScriptReply, vocabulary: Vocabulary, eosId: number): number[] {
  const ids = reply.ids === undefined ? textIds(replyText(reply), reply.split, vocabulary) : [...reply.ids];
  const outside = ids.find((id) => id >= vocabulary.size);
  if (outside !== undefined) throw new TitoError("usage", `script: the model has no token ${outside}`);
  if (reply.finish === "stop") ids.push(eosId);
  return ids;
}

/** The answer as text, laid out as the chat template prints an assistant turn, so that a faithful echo renders to the same ids. */
function replyText(reply: ScriptReply): string {
  if (reply.raw !== undefined) return reply.raw;
  const reasoning = reply.reasoning === undefined ? "" : `<think>${reply.reasoning}</think>`;
  const calls = (reply.tool_calls ?? []).map((call) => {
    const text = typeof call.arguments === "string" ? call.arguments : spacedJson(call.arguments);
    return `<tool_call>\n{"name": ${JSON.stringify(call.name)}, "arguments": ${text}}\n</tool_call>`;
  });
  return `${reasoning}${reply.content ?? ""}${calls.join("\n")}`;
}

function textIds(text: string, split: ScriptReply["split"], vocabulary: Vocabulary): number[] {
  if (split === undefined) return vocabulary.encode(text);
  if (Array.isArray(split)) {
    if (split.join("") !== text) {
      throw new TitoError(
        "usage",
        `script: the pieces of split spell ${JSON.stringify(split.join(""))}, the answer is ${JSON.stringify(text)}`,
      );
    }
    return split.flatMap((piece) => vocabulary.encode(piece));
  }
  return vocabulary.split(text).flatMap((piece) => {
    if ("marker" in piece) return [piece.marker.id];
    if (split === "characters") return [...piece.text].flatMap((character) => vocabulary.encodePlain(character));
    return vocabulary.encodeBytes(Buffer.from(piece.text));
  });
}

/** JSON as Python's `json.dumps` and the template's `tojson` space it. */
function spacedJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(spacedJson).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([key, item]) => `${JSON.stringify(key)}: ${spacedJson(item)}`)
    .join(", ")}}`;
}
