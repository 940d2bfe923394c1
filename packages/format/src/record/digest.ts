/** SHA-256 in one call where Node has it (20.12): a hash object costs more than the hashing of a short text. */
import crypto, { createHash } from "node:crypto";

/** A quarter of the cost of a hash object for a short text; younger than Node 20.0. */
export const hashAtOnce: typeof crypto.hash | undefined = crypto.hash;

/** SHA-256 of bytes, or of a text as UTF-8. */
export function sha256(data: Uint8Array | string): Buffer {
  if (hashAtOnce === undefined) return createHash("sha256").update(data).digest();
  // Text, one character a byte: the one result that is no object of its own.
  return digestBytes(hashAtOnce("sha256", data, "binary"));
}

/** A digest's bytes from its text, one character a byte. In memory of their own: digests are kept, and a pooled buffer keeps the 8 KiB that it was cut from. */
export function digestBytes(text: string): Buffer {
  const digest = Buffer.alloc(text.length);
  digest.write(text, "latin1");
  return digest;
}
