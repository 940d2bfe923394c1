/** Which harness a trajectory was recorded with, as the recorder was started for it. I/O edge: reads the journal's first record. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { readRecords } from "@tito/format";

/** The `--harness` label of the recorder's settings; null when there is none or it cannot be read. */
export function readHarness(dir: string): string | null {
  const journals = existsSync(dir) ? readdirSync(dir).filter((name) => /^journal(-\d{4})?\.seg$/.test(name)) : [];
  const name = journals.sort((a, b) => a.length - b.length || (a < b ? -1 : 1))[0];
  if (name === undefined) return null;
  try {
    for (const item of readRecords(join(dir, name), name, { mode: "tail" })) {
      if (item.kind !== "record" || item.named.name !== "journal_header") return null;
      const settings: unknown = JSON.parse(item.named.record.config_json);
      if (typeof settings !== "object" || settings === null || !("harness" in settings)) return null;
      return typeof settings.harness === "string" ? settings.harness : null;
    }
  } catch {
    // What is wrong with the file is for the reader of the whole trajectory to say.
  }
  return null;
}
