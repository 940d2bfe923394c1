import { describe, expect, it } from "vitest";
import { FRAME_HEADER_BYTES } from "../../src/frame/frame.js";
import { type ReadMode, type ScanItem, scanFile } from "../../src/read/scan.js";
import { memoryDisk } from "../support/memory-disk.js";
import { makeSegment } from "../support/segment-bytes.js";

function scan(bytes: Uint8Array, mode: ReadMode, readBytesMax?: number): ScanItem[] {
  return [...scanFile("memory", { mode, disk: memoryDisk(bytes, readBytesMax) })];
}

const seqs = (items: ScanItem[]): number[] => items.flatMap((item) => (item.kind === "frame" ? [item.seq] : []));

describe("a file that was cut", () => {
  it("at every byte gives exactly the records before the cut, and never throws", () => {
    const { bytes, starts } = makeSegment(16 * 1024);
    for (let cut = 0; cut <= bytes.length; cut++) {
      const items = scan(bytes.subarray(0, cut), "tail");
      const whole = starts.filter((start) => start > 0 && start <= cut).length;
      const frames = seqs(items);
      if (frames.length !== whole || frames.some((seq, i) => seq !== i))
        expect(frames, `cut at ${cut}`).toHaveLength(whole);
      const gaps = items.filter((item) => item.kind === "gap");
      if (starts.includes(cut)) expect(gaps).toEqual([]);
      else if (gaps.length !== 1 || gaps[0]!.reason !== "torn_tail")
        expect(gaps, `cut at ${cut}`).toBe("one torn tail");
    }
  });

  it("is refused in strict mode, with the offset", () => {
    const { bytes, starts } = makeSegment(4096);
    const cut = bytes.subarray(0, starts[2]! + 20);
    expect(() => scan(cut, "strict")).toThrowError(new RegExp(`torn_tail at offset ${starts[2]}`));
  });

  it("and filled with zeros, as a file system may leave it, is a torn tail", () => {
    const { bytes, starts } = makeSegment(4096);
    const items = scan(Buffer.concat([bytes.subarray(0, starts[2]), Buffer.alloc(8192)]), "salvage");
    expect(seqs(items)).toEqual([0, 1]);
    expect(items.at(-1)).toMatchObject({ kind: "gap", reason: "torn_tail", bytes: 8192 });
  });
});

describe("a file with one bit flipped", () => {
  it("loses at most the record that was hit, for every bit of 16 kB, and the loss is told", () => {
    const { bytes, starts } = makeSegment(16 * 1024);
    const all = starts.length - 1;
    for (let at = 0; at < bytes.length; at++) {
      const hit = starts.findLastIndex((start) => start <= at);
      for (let bit = 0; bit < 8; bit++) {
        bytes[at] = bytes[at]! ^ (1 << bit);
        // the checksums alone must see it; the chain is walked too for one bit of each byte
        const items = [...scanFile("memory", { mode: "salvage", disk: memoryDisk(bytes), skipChain: bit > 0 })];
        const frames = seqs(items);
        const gaps = items.filter((item) => item.kind === "gap");
        const right = gaps.length === 1 && frames.length === all - 1 && !frames.includes(hit);
        if (!right) expect({ at, bit, frames, gaps }).toBe("one gap, and every other record");
        if (gaps[0]!.reason === "torn_tail") expect({ at, bit }).toBe("damage, not a torn tail");
        bytes[at] = bytes[at]! ^ (1 << bit);
      }
    }
  }, 180_000);

  it("in any header field of the last record is damage, never a torn tail that is silently dropped", () => {
    const { bytes, starts } = makeSegment(4096);
    const last = starts.at(-2)!;
    for (let at = last; at < last + FRAME_HEADER_BYTES; at++) {
      for (let bit = 0; bit < 8; bit++) {
        const flipped = Buffer.from(bytes);
        flipped[at] = flipped[at]! ^ (1 << bit);
        expect(scan(flipped, "tail").at(-1)).toMatchObject({ kind: "gap", reason: "bad_header", offset: last });
        expect(() => scan(flipped, "strict")).toThrowError(/bad_header/);
      }
    }
  });
});

describe("reading", () => {
  it("loops on short reads: fewer bytes are not the end of the file", () => {
    const { bytes } = makeSegment(4096);
    expect(scan(bytes, "strict", 7).length).toBe(scan(bytes, "strict").length);
  });

  it("follows records that are larger than the window, and small ones after them", () => {
    const { bytes, starts } = makeSegment(3 * 1024 * 1024);
    expect(seqs(scan(bytes, "strict"))).toHaveLength(starts.length - 1);
    const bad = Buffer.from(bytes);
    bad.fill(0xff, starts[5]!, starts[5]! + 10);
    expect(seqs(scan(bad, "salvage"))).toHaveLength(starts.length - 2);
  });

  it("in tail mode ends at damage in the middle; in salvage mode goes on and says that the chain was not checked there", () => {
    const { bytes, starts } = makeSegment(16 * 1024);
    const bad = Buffer.from(bytes);
    bad[starts[3]! + 2] = 0;
    expect(seqs(scan(bad, "tail"))).toEqual([0, 1, 2]);
    const after = scan(bad, "salvage").filter((item) => item.kind === "frame" && item.seq >= 4);
    expect(after.map((item) => item.kind === "frame" && item.linked)).toEqual(after.map((_, i) => i > 0));
  });

  it("tells of an edited record whose checksums were made right by the chain", () => {
    const { bytes } = makeSegment(4096);
    const other = makeSegment(4200);
    // the same header, another history
    const spliced = Buffer.concat([bytes.subarray(0, other.starts[1]), bytes.subarray(other.starts[1])]);
    expect(scan(spliced, "strict").length).toBeGreaterThan(2);
    const swapped = Buffer.concat([
      bytes.subarray(0, other.starts[1]),
      bytes.subarray(other.starts[2], other.starts[3]),
      bytes.subarray(other.starts[1], other.starts[2]),
    ]);
    expect(scan(swapped, "salvage").filter((item) => item.kind === "gap")).not.toEqual([]);
  });
});
