import { createHash } from "node:crypto";

/** Bytes without any order in them, the same every time. */
export function seededBytes(size: number): Buffer {
  return size === 0 ? Buffer.alloc(0) : createHash("shake256", { outputLength: size }).update(`${size}`).digest();
}
