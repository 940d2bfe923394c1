import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Tokenizer } from "../../src/tokenizer/tokenizer.js";
import {
  goldenPath,
  idsDigest,
  openVocabulary,
  readGolden,
  sha256,
  VOCABULARIES,
  vocabularyMissing,
} from "../vocabularies.js";

interface IdGolden {
  tokenizer_json_sha256: string;
  trusted: string[];
  value: string[];
}

const strings = readGolden<string[]>("strings.json.gz");

/** Encodes as a value of a template would be. */
function encodeValue(tokenizer: Tokenizer, text: string): Int32Array {
  return tokenizer.encodeChunks([tokenizer.guard.protect(text)]).ids;
}

for (const name of Object.keys(VOCABULARIES)) {
  describe.skipIf(vocabularyMissing(name) || !existsSync(goldenPath(`ids-${name}.json`)))(`${name} vocabulary`, () => {
    const golden = readGoldenIfThere(name);

    it("is the file that the goldens were made from", () => {
      expect(sha256(readFileSync(VOCABULARIES[name]!))).toBe(golden.tokenizer_json_sha256);
    });

    it(`gives the reference's ids for ${strings.length} varied strings, as template text and as values`, async () => {
      const tokenizer = await openVocabulary(name);
      expect(strings.length).toBeGreaterThanOrEqual(2000);
      const trusted = strings.filter((text, i) => idsDigest(tokenizer.encode(text)) !== golden.trusted[i]);
      const value = strings.filter((text, i) => idsDigest(encodeValue(tokenizer, text)) !== golden.value[i]);
      expect({ trusted, value }).toEqual({ trusted: [], value: [] });
    });

    it("decodes its own ids to the same bytes, whatever the text", async () => {
      const tokenizer = await openVocabulary(name);
      const normal = strings.filter((text) => text.normalize("NFC") === text);
      const lost = normal.filter((text) => tokenizer.decode(tokenizer.encode(text)) !== text);
      expect(lost).toEqual([]);
    });
  });
}

function readGoldenIfThere(name: string): IdGolden {
  return existsSync(goldenPath(`ids-${name}.json`))
    ? readGolden<IdGolden>(`ids-${name}.json`)
    : { tokenizer_json_sha256: "", trusted: [], value: [] };
}
