/** Fields that calls and trials have in common, read leniently: a field of a wrong type is a missing field, as in an engine's reply. */
import { asCount, asObject, asString } from "../json/narrow.js";
import type { Labels, LoggedTimes } from "./logged-call.js";
import { type JsonRecord, spelled } from "./spellings.js";

const LABEL_CHARS_MAX = 256;

export function readLabels(record: JsonRecord): Labels {
  const trajectory = spelled(record, "trajectory");
  return {
    trajectory: typeof trajectory === "number" ? String(trajectory) : label(trajectory),
    runId: label(record.run_id),
    groupId: label(record.group_id),
    trialId: label(record.trial_id),
    attempt: typeof record.attempt === "number" && record.attempt >= 1 ? asCount(record.attempt) : null,
    metadata: new Map(
      Object.entries(asObject(record.metadata) ?? {}).flatMap(([key, value]) =>
        typeof value === "string" ? [[key, value] as const] : [],
      ),
    ),
  };
}

export function readTimes(record: JsonRecord): LoggedTimes {
  return {
    received: instant(spelled(record, "received")) ?? instant(record.created),
    sent: instant(spelled(record, "sent")),
    firstToken: instant(spelled(record, "firstToken")),
    finished: instant(spelled(record, "finished")),
  };
}

/** Numbers below this are seconds: as milliseconds they would be before 1973. */
const MILLISECONDS_FROM = 1e11;

/** Milliseconds since the epoch from seconds, milliseconds or an ISO 8601 text. */
function instant(value: unknown): number | null {
  const number = typeof value === "string" ? Date.parse(value) : value;
  if (typeof number !== "number" || !Number.isFinite(number) || number < 0) return null;
  const ms = Math.round(typeof value === "string" || number >= MILLISECONDS_FROM ? number : number * 1000);
  return Number.isSafeInteger(ms) ? ms : null;
}

/** A short text of at least one character. */
export function label(value: unknown): string | null {
  const text = asString(value);
  return text === null || text === "" ? null : text.slice(0, LABEL_CHARS_MAX);
}
