/** The one model, as the list and as an entry of it: in OpenAI's words, or in Anthropic's for whoever sends the header that its clients send. */
import { asObject, asString } from "../json/narrow.js";

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
  return {
    type: "model",
    id,
    display_name: asString(fields?.display_name) ?? id,
    created_at: createdAt(fields?.created),
  };
}

/** The last second that RFC 3339 can write: 9999-12-31T23:59:59Z. */
const SECONDS_MAX = 253_402_300_799;
/** Seconds, milliseconds, microseconds, nanoseconds: engines tell any of them. */
const UNITS_PER_SECOND = [1, 1e3, 1e6, 1e9];
/** 2001-09-09: what is earlier in a finer unit is taken for a coarser one. */
const SECONDS_PLAUSIBLE = 1_000_000_000;

/** RFC 3339 in UTC, of a number in any unit, digits in a string, or a date in words; 1970 where it can not be told, as Anthropic's API says for it. */
function createdAt(created: unknown): string {
  const seconds = secondsOf(created);
  const unit = UNITS_PER_SECOND.findLast((per) => seconds / per >= SECONDS_PLAUSIBLE) ?? 1;
  const told = Math.floor(seconds / unit);
  const usable = Number.isFinite(told) && told >= 0 && told <= SECONDS_MAX;
  return new Date((usable ? told : 0) * 1000).toISOString().replace(/\.000Z$/, "Z");
}

function secondsOf(created: unknown): number {
  if (typeof created === "number") return created;
  if (typeof created !== "string") return 0;
  return /^\s*-?\d+(\.\d+)?\s*$/.test(created) ? Number(created) : Date.parse(created) / 1000;
}
