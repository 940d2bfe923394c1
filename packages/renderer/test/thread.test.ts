/** The event loop of a program with the renderer in a thread loads what it needs to ask it, and no more. */
import { existsSync, readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const source = (path: string): string => fileURLToPath(new URL(`../src/${path}`, import.meta.url));

/** Packages that a file loads, itself and by what it imports; types are not loaded. */
function packagesLoaded(file: string, seen = new Set<string>()): Set<string> {
  const packages = new Set<string>();
  if (seen.has(file)) return packages;
  seen.add(file);
  const statements = readFileSync(file, "utf8").matchAll(/^(?:import|export) (?!type )[^;]*?from "([^"]+)";/gms);
  for (const [, target] of statements) {
    const beside = resolve(dirname(file), target!.replace(/\.js$/, ".ts"));
    if (!existsSync(beside)) packages.add(target!);
    else for (const name of packagesLoaded(beside, seen)) packages.add(name);
  }
  return packages;
}

describe("the renderer's entry for the event loop", () => {
  it("loads neither template engine nor tokenizer, which the thread's entry does", () => {
    const heavy = ["@huggingface/jinja", "tiktoken/lite/init"];
    expect([...packagesLoaded(source("worker/worker-entry.ts"))]).toEqual(expect.arrayContaining(heavy));
    const loaded = packagesLoaded(source("thread.ts"));
    expect([...loaded]).toContain("@tito/format");
    for (const name of heavy) expect(loaded).not.toContain(name);
  });
});
