import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { loadPolicy, printPolicy } from "../src/recipe/policy.js";
import { MASK_REASONS, SPAN_KINDS, SPAN_REASONS, TERMINATIONS } from "../src/recipe/reasons.js";
import { runHeadSchema, sampleSchema } from "../src/write/rollout-run.js";

const doc = (name: string) => readFileSync(resolve(import.meta.dirname, "..", "..", "..", "docs", name), "utf8");

/** First cells of the table rows below a heading, without back quotes. */
function firstCells(text: string, heading: string): string[] {
  const start = text.indexOf(`\n${heading}\n`);
  const section = text.slice(start, text.indexOf("\n#", start + heading.length + 2));
  return [...section.matchAll(/^\| `([^`]+)` /gm)].map((match) => match[1]!);
}

describe("docs/samples.md", () => {
  it("lists every reason in the order in which they are tried, every kind and every termination", () => {
    const text = doc("samples.md");
    expect(firstCells(text, "### Reasons")).toEqual(["trained", "shared_prefix", ...MASK_REASONS]);
    expect(firstCells(text, "### Kinds").sort()).toEqual([...SPAN_KINDS].sort());
    expect(firstCells(text, "### Termination").sort()).toEqual([...TERMINATIONS].sort());
    expect(SPAN_REASONS).toHaveLength(MASK_REASONS.length + 5);
  });

  it("names every field of a run and of a sample", () => {
    const text = doc("samples.md");
    for (const key of [...Object.keys(runHeadSchema.shape), ...Object.keys(sampleSchema.shape)])
      expect(text).toContain(`\`${key}\``);
  });
});

describe("docs/recipe.md", () => {
  it("shows the defaults", () => {
    const yaml = /```yaml\n(version: 1[\s\S]*?)```/.exec(doc("recipe.md"))![1]!;
    expect(loadPolicy(yaml)).toEqual(loadPolicy(null));
    const keys = (text: string) => [...text.matchAll(/^ *([a-z_]+):/gm)].map((match) => match[1]);
    expect(keys(yaml)).toEqual(keys(printPolicy(loadPolicy(null))));
  });

  it("shows a second policy that is valid", () => {
    const [, , example] = doc("recipe.md").split("```yaml\n");
    expect(loadPolicy(example!.slice(0, example!.indexOf("```"))).exclude.rules).toHaveLength(2);
  });
});
