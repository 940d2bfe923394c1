/** What the first `tito materialize` pays for: only what every output needs is loaded with the package. */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";

/** Names of packages that `file` and what it imports load at once; types and `import()` load nothing. */
function loadedBy(file: string, seen = new Set<string>()): Set<string> {
  const src = join(import.meta.dirname, "..", "src");
  const packages = new Set<string>();
  if (seen.has(file)) return packages;
  seen.add(file);
  const text = readFileSync(join(src, file), "utf8");
  for (const [, head, name] of text.matchAll(/^(?:import|export)(?! type )((?:[^;"]|\n)*?)from "([^"]+)";/gm)) {
    if (/^\s*\{\s*(type [^,}]+,?\s*)+\}\s*$/.test(head!)) continue;
    if (name!.startsWith("."))
      for (const each of loadedBy(join(dirname(file), name!).replace(/\.js$/, ".ts"), seen)) packages.add(each);
    else packages.add(name!);
  }
  return packages;
}

it("neither Parquet's writer and reader nor YAML is loaded before a file needs it", () => {
  const loaded = loadedBy("index.ts");
  expect([...loaded]).toContain("@tito/format");
  for (const heavy of ["apache-arrow", "parquet-wasm", "yaml"]) expect([...loaded]).not.toContain(heavy);
  expect([...loadedBy("audit/read-parquet.ts")]).toContain("parquet-wasm");
});
