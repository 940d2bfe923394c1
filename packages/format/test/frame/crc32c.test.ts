import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compileFastUpdate, crc32c, updateByTable } from "../../src/frame/crc32c.js";
import { seededBytes } from "../support/seeded-bytes.js";

const slow = (data: Uint8Array): number => (updateByTable(data, -1) ^ -1) >>> 0;

describe("CRC-32C", () => {
  it("gives the values of RFC 3720 B.4", () => {
    expect(crc32c(Buffer.alloc(32))).toBe(0x8a9136aa);
    expect(crc32c(Buffer.alloc(32, 0xff))).toBe(0x62a8ab43);
    expect(crc32c(Uint8Array.from({ length: 32 }, (_, i) => i))).toBe(0x46dd794e);
    expect(crc32c(Buffer.from("123456789"))).toBe(0xe3069283);
    expect(slow(Buffer.from("123456789"))).toBe(0xe3069283);
  });

  it("is the same by the fast path and by the table, around every size where the fast path changes its way", () => {
    expect(compileFastUpdate()).not.toBeNull();
    const edges = [
      0, 1, 7, 8, 15, 16, 4096, 8191, 8192, 8193, 8207, 8208, 16384, 131071, 131072, 131073, 262144, 300001,
    ];
    for (const size of edges) {
      const data = seededBytes(size);
      expect(crc32c(data), `${size} bytes`).toBe(slow(data));
    }
  });

  it("is the same for random pieces at any alignment", () => {
    const pool = seededBytes(200_000);
    fc.assert(
      fc.property(fc.nat(100_000), fc.nat(100_000), (start, length) => {
        const piece = pool.subarray(start, start + length);
        return crc32c(piece) === slow(piece);
      }),
      { numRuns: 60 },
    );
  });
});
