/** The one model, as the list and as an entry of it: in OpenAI's words, or in Anthropic's for whoever sends the header that its clients send. */
import { asCount, asObject, asString } from "../json/narrow.js";

/** `entry`: the engine's own, as JSON text. */
export interface ServedModel {
  id: string;
  entry: string;
}

export function modelsReply({ id, entry }: ServedModel, anthropic: boolean): string {
  if (!anthropic) return `{"object":"list","data":[${entry}]}`;
  const data = [anthropicEntry({ id, entry })];
  return JSON.stringify({ data, has_more: false, first_id: id, last_id: id });
}

/** Null: there is no such model here. */
export function modelReply(model: ServedModel, wanted: string, anthropic: boolean): string | null {
  if (wanted !== model.id) return null;
  return anthropic ? JSON.stringify(anthropicEntry(model)) : model.entry;
}

function anthropicEntry({ id, entry }: ServedModel): Record<string, string> {
  const fields = asObject(JSON.parse(entry));
  const created = new Date((asCount(fields?.created) ?? 0) * 1000).toISOString().replace(/\.000Z$/, "Z");
  return { type: "model", id, display_name: asString(fields?.display_name) ?? id, created_at: created };
}
