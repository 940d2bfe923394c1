import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { FAMILIES } from "../../src/families/families.js";
import { goldenPath, readGolden } from "../vocabularies.js";

const document = (path: string) => readFileSync(fileURLToPath(new URL(`../../../../${path}`, import.meta.url)), "utf8");
const table = document("docs/families.md");
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

describe("README.md", () => {
  const cellsOf = (row: string) => row.split(" | ").map((cell) => cell.replace(/^\| | \|$/g, ""));
  const section = document("README.md").split("\n## Model families\n")[1]!.split("\n## ")[0]!;
  const summary = [...section.matchAll(/^\| `.*$/gm)].flatMap(([row]) => {
    const [families, ids, authority, template] = cellsOf(row);
    return [...families!.matchAll(/`([^`]+)`/g)].map((family) => [family[1]!, authority, ids, template]);
  });

  it("lists each family once, with what is proven, against what, and whose template, as docs/families.md says", () => {
    const details = [...table.matchAll(/^\| `([^`]+)` \|.*\| \d+ \|$/gm)].map(([row, family]) => [
      family!,
      ...cellsOf(row).slice(1, 4),
    ]);
    expect(details.map(([family]) => family).sort()).toEqual(Object.keys(FAMILIES).sort());
    expect(summary.toSorted()).toEqual(details.toSorted());
  });
});
