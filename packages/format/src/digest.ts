/** SHA-256 in one call where Node has it (20.12): a hash object costs more than the hashing of a short text. */
import crypto, { createHash } from "node:crypto";

const hashAtOnce: typeof crypto.hash | undefined = crypto.hash;

/** SHA-256 of bytes, or of a text as UTF-8. */
export function sha256(data: Uint8Array | string): Buffer {
  if (hashAtOnce === undefined) return createHash("sha256").update(data).digest();
  // Text, one character a byte: the one result that is no object of its own.
  return Buffer.from(hashAtOnce("sha256", data, "binary"), "latin1");
}
