import fs from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { CHAIN_START, encodeFrame, FRAME_HEADER_BYTES, FRAME_MAGIC } from "../src/frame/frame.js";
import { MAC_TYPE } from "../src/frame/mac.js";
import { ERROR_CODES } from "../src/record/errors.js";
import { LIMITS } from "../src/record/limits.js";
import { unpackPayload } from "../src/record/payload.js";
import { encodeRecord } from "../src/record/record-codec.js";
import { FORMAT_VERSION, RecordType } from "../src/record/records.js";
import { ids, turn } from "./support/records.js";

const docs = (name: string): string =>
  fs.readFileSync(path.resolve(import.meta.dirname, "../../../docs", name), "utf8");

/** Rows of the Markdown table under a heading, as cells. */
function table(text: string, heading: string): string[][] {
  const part = text.slice(text.indexOf(heading) + heading.length).split(/\n#+ /)[0]!;
  const rows = part.split("\n").filter((line) => line.startsWith("|"));
  return rows.slice(2).map((row) =>
    row
      .split(/(?<!\\)\|/)
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

describe("docs/errors.md", () => {
  it("lists exactly the codes of errors.ts, with their statuses and exits, in the same order", () => {
    const rows = table(docs("errors.md"), "# Errors").map(([code, status, exit]) => [
      code,
      Number(status),
      Number(exit),
    ]);
    expect(rows).toEqual(Object.entries(ERROR_CODES).map(([code, { status, exit }]) => [code, status, exit]));
    for (const row of table(docs("errors.md"), "# Errors")) expect(row[3]!.length, row[0]).toBeGreaterThan(5);
  });
});

describe("docs/format.md", () => {
  const text = docs("format.md");

  it("has the limits of limits.ts", () => {
    expect(table(text, "### Limits").map(([name, value]) => [name, Number(value)])).toEqual(Object.entries(LIMITS));
  });

  it("has the record types of records.ts, and the version", () => {
    const types = table(text, "## Record types").map(([type, name]) => [name, Number(type)]);
    expect(types).toEqual([...Object.entries(RecordType), ["mac", MAC_TYPE]]);
    expect(text).toContain(`Format version: **${FORMAT_VERSION}**`);
    expect(table(text, "## Version history").map(([version]) => Number(version))).toContain(FORMAT_VERSION);
  });

  it("has the frame's bytes where they are", () => {
    const { header } = encodeFrame(0x02, 5, Buffer.from("payload"), CHAIN_START);
    expect(header).toHaveLength(FRAME_HEADER_BYTES);
    expect(header.readUInt32BE(2)).toBe(FRAME_MAGIC);
    for (const [offset, bytes] of table(text, "## Frame")) {
      const constant = Buffer.from(bytes!.match(/`([0-9a-f ]+)`/)![1]!.replaceAll(" ", ""), "hex");
      expect(header.subarray(Number(offset), Number(offset) + constant.length), `offset ${offset}`).toEqual(constant);
    }
  });

  it("names every key of a turn", () => {
    const keys = [...unpackPayload(encodeRecord("turn", turn("a", ids(1, 1), ids(1, 1))), "test").keys()];
    const section = text.slice(text.indexOf("### turn"), text.indexOf("### The other records"));
    for (const key of keys) expect(section, key).toContain(key);
  });
});
