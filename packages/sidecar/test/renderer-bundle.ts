/** The renderer bundle of the embedded engine's own model, made once a test file. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { certify, loadBundle, makeBundle, PromptRenderer } from "@tito/renderer";
import { afterAll, beforeAll } from "vitest";

const MODEL_DIR = fileURLToPath(new URL("../../../fixtures/policy", import.meta.url));

/** Registers making and removing it; the result's `dir` is set when tests run. */
export function useBundle(options: { certified: boolean }): { dir: string } {
  const bundle = { dir: "" };
  let parent = "";
  beforeAll(async () => {
    parent = mkdtempSync(join(tmpdir(), "tito-bundle-"));
    bundle.dir = join(parent, "bundle");
    await makeBundle({ from: MODEL_DIR, family: "demo", out: bundle.dir, date: "2026-11-30" });
    if (!options.certified) return;
    const certificate = certify(await PromptRenderer.open(await loadBundle(bundle.dir)), { conversations: 10 });
    writeFileSync(join(bundle.dir, "certificate.json"), JSON.stringify(certificate));
  });
  afterAll(() => rmSync(parent, { recursive: true, force: true }));
  return bundle;
}
