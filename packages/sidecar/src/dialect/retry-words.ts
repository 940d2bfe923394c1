/** The words of an error inside a stream. */
import type { DialectError } from "./neutral.js";

/**
 * After a 200 no status is left to go by, and harnesses decide by the words whether to ask again: Pi does so on "server error",
 * and ends its run on words that it does not know.
 */
export function retryWords(error: DialectError): DialectError {
  return error.retryable ? { ...error, message: `server error, try again: ${error.message}` } : error;
}
