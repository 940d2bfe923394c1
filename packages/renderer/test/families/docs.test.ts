import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { FAMILIES } from "../../src/families/families.js";
import { goldenPath, readGolden } from "../vocabularies.js";

const table = readFileSync(fileURLToPath(new URL("../../../../docs/families.md", import.meta.url)), "utf8");
const rows = [...table.matchAll(/^\| `([^`]+)` \|.*\| (\d+) \|$/gm)].map((row) => [row[1]!, Number(row[2])] as const);

describe("docs/families.md", () => {
  it("lists the families that there are, each with goldens", () => {
    expect(rows.map(([family]) => family).sort()).toEqual(Object.keys(FAMILIES).sort());
    for (const [family] of rows) expect(existsSync(goldenPath(`render-${family}.json.gz`)), family).toBe(true);
  });

  it.each(rows)("says of %s how many conversations its template renders", (family, count) => {
    const golden = readGolden<{ conversations: (object | null)[] }>(`render-${family}.json.gz`);
    expect(golden.conversations.filter((rendered) => rendered !== null).length).toBe(count);
  });
});
