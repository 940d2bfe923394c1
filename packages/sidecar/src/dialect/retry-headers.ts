/** Headers that tell a client whether to try again, understood by the official SDKs of every dialect. */
import type { DialectError } from "./neutral.js";

export function retryHeaders(error: DialectError): Record<string, string> {
  const headers: Record<string, string> = {
    "content-type": "application/json",
    "x-should-retry": String(error.retryable),
  };
  if (error.retryable && error.retryAfterS !== undefined) headers["retry-after"] = String(error.retryAfterS);
  return headers;
}
