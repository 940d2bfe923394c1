/** One line of a log, whatever its layout. Pure. */
import { TitoError } from "@tito/format";
import { asObject } from "../json/narrow.js";
import { parseEngineJson } from "../json/slices.js";
import { readCall } from "./call-line.js";
import type { LoggedLine } from "./logged-call.js";
import { readLabels } from "./read-fields.js";
import { findRolloutDetails, readRolloutDetails, trialLabels } from "./rollout-details.js";
import { unknownFields } from "./spellings.js";

/**
 * `ownId` names the call where the log does not.
 * @throws TitoError `format_invalid`, `bad_request` or `unsupported` that says what is wrong with the line, without its place.
 */
export function readLine(bytes: Uint8Array, ownId: string): LoggedLine {
  const text = decode(bytes);
  const record = asObject(parse(text));
  if (record === null) throw new TitoError("format_invalid", "not a JSON object");
  const details = findRolloutDetails(record);
  if (details !== null)
    return { labels: trialLabels(record), trial: true, ignored: [], ...readRolloutDetails(record, details, ownId) };
  const call = readCall(text, record, ownId);
  return { labels: readLabels(record), trial: false, calls: [call], ignored: unknownFields(record), warnings: [] };
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new TitoError("format_invalid", "not UTF-8", { cause });
  }
}

/** Bare NaN and Infinity are read: some engines print them, and they become marked gaps. */
function parse(text: string): unknown {
  try {
    return parseEngineJson(text);
  } catch (cause) {
    throw new TitoError("format_invalid", `not JSON: ${cause instanceof Error ? cause.message : "?"}`, { cause });
  }
}
