/**
 * A payload: one msgpack map, written by msgpackr. Bytes from a file are read by a strict reader of our own: msgpackr honours record and
 * typed-array extensions and grows arrays by what a header claims, and a guard before it would walk every payload twice.
 */
import { Packr } from "msgpackr";
import { TitoError } from "./errors.js";
import { PayloadProblem, readPayload, type WireMap } from "./payload-reader.js";

const packr = new Packr({
  useRecords: false,
  mapsAsObjects: false,
  moreTypes: false,
  structuredClone: false,
  variableMapSize: true,
});

export function packPayload(map: WireMap): Uint8Array {
  return packr.pack(map);
}

/** Reads a payload. `where` (file, offset, seq) goes into the error. Throws `format_invalid` for anything but one well-formed, bounded map. */
export function unpackPayload(bytes: Uint8Array, where: string): WireMap {
  try {
    return readPayload(bytes);
  } catch (problem) {
    if (!(problem instanceof PayloadProblem)) throw problem;
    throw new TitoError("format_invalid", `${where}: ${problem.message}`);
  }
}
