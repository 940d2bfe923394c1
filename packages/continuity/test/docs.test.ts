import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { APPEND_REASONS, DRIFT_CAUSES, FALLBACK_REASONS, METRICS, OPENING_REASONS } from "../src/index.js";

const page = readFileSync(new URL("../../../docs/continuity.md", import.meta.url), "utf8");

/** First cells of the table under a heading. */
function rows(heading: string): string[] {
  const section = page.split(/^## /m).find((part) => part.startsWith(heading))!;
  return [...section.matchAll(/^\| `([^|]*)` \|/gm)].map((match) => match[1]!);
}

it.each([
  ["Reasons", OPENING_REASONS],
  ["Drift causes", DRIFT_CAUSES],
])("docs/continuity.md lists under %s what the engine can answer", (heading, list) => {
  expect(rows(heading).sort()).toEqual(Object.keys(list).sort());
});

it("docs/continuity.md explains every fallback, the append reason and the two metrics", () => {
  expect(rows("Incremental matching")).toEqual(expect.arrayContaining(Object.keys(FALLBACK_REASONS)));
  for (const word of [...Object.keys(APPEND_REASONS), ...Object.values(METRICS)]) expect(page).toContain(`\`${word}\``);
});
