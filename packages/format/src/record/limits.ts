/**
 * Bounds on everything that a reader believes and a writer makes. docs/format.md#limits lists the same numbers.
 * A value beyond a bound is refused by the writer (`format_limit`) and reported as damage by the reader; nothing is allocated for it.
 */
export const LIMITS = {
  /** Payload of one frame. */
  payloadBytesMax: 128 * 1024 * 1024,
  /** Ids in one array, and of one line of a segment. */
  idsMax: 16 * 1024 * 1024,
  /** Nesting of maps and arrays inside a payload. */
  payloadDepthMax: 32,
  /** Values (of any kind) inside one payload. */
  payloadValuesMax: 2_000_000,
  /** Ids, names, reasons: the short strings of a record. */
  nameBytesMax: 1024,
  /** Details and explanations. */
  detailBytesMax: 64 * 1024,
  /** Message text, tool arguments, configuration. */
  textBytesMax: 64 * 1024 * 1024,
  /** A request body before compression. */
  bodyBytesMax: 64 * 1024 * 1024,
  messagesMax: 100_000,
  toolsMax: 10_000,
  spansMax: 100_000,
  /** Open segment files of one trajectory. */
  openSegmentsMax: 64,
  segmentsMax: 999_999,
  partsMax: 9_999,
  bootsMax: 9_999,
  manifestBytesMax: 64 * 1024 * 1024,
} as const;
