/** docs/promises.md and docs/bug-table.md name tests: each link's text must stand in the test that it leads to. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { ALLOWED_ROOMS } from "../checks/room-table.js";

const docs = resolve(import.meta.dirname, "../../docs");

interface Row {
  item: string;
  cells: string[];
  links: { text: string; file: string }[];
}

/** Rows of all tables of a page whose first cell is a number. */
function rowsOf(page: string): Row[] {
  return readFileSync(join(docs, page), "utf8")
    .split("\n")
    .filter((line) => /^\| (?:C\d+\.)?\d+ \|/.test(line))
    .map((line) => {
      const cells = line.split(" | ").map((cell) => cell.replace(/^\| | \|$/g, "").trim());
      const links = [...line.matchAll(/\[([^\]]+)\]\(([^)]+\.test\.ts)\)/g)].map((link) => ({
        text: link[1]!,
        file: link[2]!,
      }));
      return { item: cells[0]!, cells, links };
    });
}

/** An item number is not the beginning of another one. */
function names(test: string, text: string): boolean {
  if (!/^C\d+\.\d+$/.test(text)) return test.includes(text);
  return new RegExp(`\\b${text.replace(".", "\\.")}(?!\\d)`).test(test);
}

const promises = rowsOf("promises.md");
const bugs = rowsOf("bug-table.md");

describe.each([
  ["promises.md", promises],
  ["bug-table.md", bugs],
])("docs/%s", (_, rows) => {
  it.each(rows.flatMap((row) => row.links.map((link) => [row.item, link.text, link.file] as const)))(
    "%s: %s is in %s",
    (_item, text, file) => {
      const path = join(docs, file);
      expect(existsSync(path)).toBe(true);
      expect(names(readFileSync(path, "utf8"), text)).toBe(true);
    },
  );
});

it("docs/promises.md has every promise from 1 to 30, with a proof or the word that there is none", () => {
  expect(promises.map((row) => Number(row.item))).toEqual(Array.from({ length: 30 }, (_, index) => index + 1));
  for (const row of promises)
    expect([row.item, row.links.length > 0]).toEqual([row.item, row.cells[2] !== "not proven yet"]);
});

it("docs/bug-table.md has all 61 reports once, each with a test or the word that there is none", () => {
  expect(new Set(bugs.map((row) => row.item)).size).toBe(61);
  expect(bugs).toHaveLength(61);
  for (const row of bugs)
    expect([row.item, row.links.length > 0]).toEqual([row.item, row.cells.at(-1) !== "no test yet"]);
});

it("docs/bug-table.md does not say of a report that it has no test while a test names it", () => {
  const root = resolve(docs, "..");
  const tests = readdirSync(join(root, "packages"))
    .map((name) => join(root, "packages", name, "test"))
    .concat(join(root, "scripts", "test"))
    .filter((dir) => existsSync(dir))
    .flatMap((dir) => readdirSync(dir, { recursive: true, encoding: "utf8" }).map((name) => join(dir, name)))
    .filter((file) => file.endsWith(".test.ts"))
    .map((file) => readFileSync(file, "utf8"));
  const untested = bugs.filter((row) => row.links.length === 0).map((row) => row.item);
  expect(untested.filter((item) => tests.some((test) => names(test, item)))).toEqual([]);
});

describe("ARCHITECTURE.md", () => {
  const text = readFileSync(join(docs, "../ARCHITECTURE.md"), "utf8");

  it.each(Object.entries(ALLOWED_ROOMS))(
    "has a sentence for each room of %s, in the order of its table",
    (name, table) => {
      const section = text.split(`### ${name}\n`)[1]?.split(/^##/m)[0] ?? "";
      const rows = [...section.matchAll(/^\| `([^`]+)` \| (.+) \|$/gm)];
      expect(rows.map(([, room]) => room)).toEqual(Object.keys(table));
      for (const [, room, sentence] of rows) expect(sentence, room).toMatch(/\w.*\.$/);
    },
  );
});

describe("README.md", () => {
  const text = readFileSync(join(docs, "../README.md"), "utf8");

  it("shows a row of the golden output as it is", () => {
    const shown = /```jsonc\n([\s\S]*?)```/.exec(text)![1]!.replace(/\/\/.*$/gm, "");
    const golden = readFileSync(join(docs, "../fixtures/trajectories/goldens/default.jsonl"), "utf8").split("\n")[0]!;
    expect(JSON.parse(golden)).toMatchObject(JSON.parse(shown));
  });

  it("repeats figures of docs/numbers.md", () => {
    const numbers = readFileSync(join(docs, "numbers.md"), "utf8");
    const figures = [
      ...text.split("\n## Numbers\n")[1]!.matchAll(/\d[\d,.]*(?:e-\d+| ×| ms| MiB| KiB| MB)|\d+ of \d+/g),
    ];
    expect(figures.length).toBeGreaterThanOrEqual(7);
    for (const [figure] of figures) expect(numbers).toContain(figure);
  });
});

it("docs/README.md leads to every page of docs", () => {
  const map = readFileSync(join(docs, "README.md"), "utf8");
  const pages = readdirSync(docs).filter((name) => name.endsWith(".md") && name !== "README.md");
  for (const page of pages) expect(map).toContain(`(${page})`);
});
