/**
 * @tito/format owns the bytes of a segment file: record types, frames, checksums, the digest chain, limits, reader and writer.
 * It never decides where a turn belongs and never speaks HTTP.
 */
export { ERROR_CODES, type ErrorCode, TitoError, type TitoErrorOptions } from "./errors.js";
export type { ContentPart, Message, Role, ToolCall, ToolDefinition } from "./messages.js";
export * from "./records.js";
