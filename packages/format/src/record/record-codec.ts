/** A record ↔ its payload bytes, checked on both sides: what could not be read back is refused when written. */
import { TitoError } from "./errors.js";
import { type Field, takeField } from "./fields.js";
import { findTurnProblem } from "./invariants.js";
import { packPayload, unpackPayload } from "./payload.js";
import { PayloadProblem, PayloadReader, type WireMap } from "./payload-reader.js";
import { RECORD_FIELDS } from "./record-fields.js";
import { type RecordMap, RecordType, type RecordTypeName, type TurnRecord } from "./records.js";

const NAME_OF_TYPE = new Map(
  Object.entries(RecordType).map(([name, type]) => [type as number, name as RecordTypeName]),
);

/** Types from here on may be skipped by a reader that does not know them. */
const FIRST_OPTIONAL_TYPE = 0x80;

/** A record with its type's name; discriminated by `name`. */
export type NamedRecord = { [K in RecordTypeName]: { name: K; record: RecordMap[K] } }[RecordTypeName];

/** Payload bytes of a record. Throws `format_invalid` when a field or an invariant does not hold. */
export function encodeRecord<K extends RecordTypeName>(name: K, record: RecordMap[K]): Uint8Array {
  const fields = RECORD_FIELDS[name];
  const wire = fields.write(record, "") as WireMap;
  if (name === "turn") checkTurn(record as TurnRecord, "turn record");
  return packPayload(wire);
}

/**
 * Reads a payload. Null for a type from 0x80 on that this reader does not know.
 * Throws `format_invalid`, with `where` (file, offset, seq) in the message, for an unknown type below 0x80, a bad field or a broken invariant.
 */
export function decodeRecord(type: number, payload: Uint8Array, where: string): NamedRecord | null {
  const name = NAME_OF_TYPE.get(type);
  if (name === undefined) {
    if (type >= FIRST_OPTIONAL_TYPE) return null;
    throw new TitoError("format_invalid", `${where}: unknown record type 0x${type.toString(16)}`, {
      hint: "read this file with the version of tito that wrote it, or a later one",
    });
  }
  const taken = takeRecord(name, payload);
  const wire = taken === null ? unpackPayload(payload, where) : null;
  try {
    const record = taken ?? RECORD_FIELDS[name].read(wire as WireMap, "");
    if (name === "turn") checkTurn(record as TurnRecord, "turn record");
    return { name, record } as NamedRecord;
  } catch (cause) {
    if (!TitoError.is(cause)) throw cause;
    throw new TitoError("format_invalid", `${where}: ${name}: ${cause.message}`, { cause });
  }
}

/** A record that is laid out as this version writes it, read in one pass; null for any other, and for one with anything wrong in it. */
export function takeRecord(name: RecordTypeName, payload: Uint8Array): RecordMap[RecordTypeName] | null {
  const reader = new PayloadReader(payload);
  const fields = RECORD_FIELDS[name] as Field<RecordMap[RecordTypeName]>;
  try {
    const record = takeField(fields, reader, 0);
    return reader.ended ? record : null;
  } catch (problem) {
    if (problem instanceof PayloadProblem || TitoError.is(problem)) return null;
    throw problem;
  }
}

function checkTurn(turn: TurnRecord, where: string): void {
  const problem = findTurnProblem(turn);
  if (problem !== null) throw new TitoError("format_invalid", `${where} of call ${turn.call_id}: ${problem}`);
}
