import { createHash } from "node:crypto";

/** Uniform numbers in [0, 1) with 53 random bits. */
export type Rng = () => number;

/**
 * A generator whose stream depends on the parts alone (SHA-256 of them seeds sfc32): the same parts give the same numbers on every machine.
 * Int32Array parts stand for token ids.
 */
export function rngFrom(...seedParts: readonly (string | number | Int32Array)[]): Rng {
  const hash = createHash("sha256");
  for (const part of seedParts) {
    const bytes =
      typeof part === "object"
        ? new Uint8Array(part.buffer, part.byteOffset, part.byteLength)
        : Buffer.from(String(part));
    // Type and length first, so that ("1", "23") and ("12", "3") differ, as do 1 and "1".
    hash.update(`${typeof part}:${bytes.byteLength}:`).update(bytes);
  }
  const seed = hash.digest();
  let a = seed.readUInt32LE(0);
  let b = seed.readUInt32LE(4);
  let c = seed.readUInt32LE(8);
  let counter = seed.readUInt32LE(12);
  const next = (): number => {
    const sum = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return sum >>> 0;
  };
  for (let i = 0; i < 12; i++) next();
  return () => (next() * 2 ** 21 + (next() >>> 11)) / 2 ** 53;
}
