import { createHash } from "node:crypto";

/** First 24 hex digits of the SHA-256 of the parts, each with its length, so that no two lists of parts look alike. */
export function hashOf(...parts: readonly (string | number | readonly number[])[]): string {
  const hash = createHash("sha256");
  for (const part of parts) {
    const bytes = typeof part === "object" ? Buffer.from(Int32Array.from(part).buffer) : Buffer.from(String(part));
    hash.update(`${bytes.length}:`).update(bytes);
  }
  return hash.digest("hex").slice(0, 24);
}
