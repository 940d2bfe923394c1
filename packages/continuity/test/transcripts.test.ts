import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { DRIFT_CAUSES, FALLBACK_REASONS, OPENING_REASONS } from "../src/index.js";
import { replay } from "./transcript.js";

const folder = fileURLToPath(new URL("transcripts/", import.meta.url));
const names = readdirSync(folder).filter((name) => name.endsWith(".txt"));

describe("transcripts (UPDATE=1 writes the answers anew)", () => {
  for (const name of names) {
    it(name, () => {
      const source = readFileSync(folder + name, "utf8");
      const made = replay(source);
      if (process.env.UPDATE === "1") writeFileSync(folder + name, made);
      else expect(made).toBe(source);
    });
  }

  it("show every decision, every reason, every drift cause and every fallback", () => {
    const all = names.map((name) => readFileSync(folder + name, "utf8")).join("\n");
    const answers = all.split("\n").filter((line) => line.startsWith("  = "));
    const shown = (word: string): boolean => answers.some((line) => new RegExp(`\\b${word}\\b`).test(line));
    const words = ["append", "branch", "new_segment", "extends_tip"];
    const lists = [OPENING_REASONS, DRIFT_CAUSES, FALLBACK_REASONS];
    const missing = [...words, ...lists.flatMap((list) => Object.keys(list))].filter((word) => !shown(word));
    expect(missing).toEqual([]);
  });
});
