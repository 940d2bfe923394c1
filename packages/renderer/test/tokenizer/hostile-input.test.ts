import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { openVocabulary, VOCABULARIES, vocabularyMissing } from "../vocabularies.js";

for (const name of Object.keys(VOCABULARIES)) {
  describe.skipIf(vocabularyMissing(name))(`${name} vocabulary`, () => {
    it("an unbroken run of half a million characters costs no more than linear text, whatever the character", async () => {
      const tokenizer = await openVocabulary(name);
      const time = (text: string) => {
        // Processor time: other work on the machine does not count.
        const from = process.cpuUsage();
        const ids = tokenizer.encodePlain(text);
        expect(tokenizer.decode(ids)).toBe(text);
        const { user, system } = process.cpuUsage(from);
        return (user + system) / 1000;
      };
      time("=".repeat(10_000));
      const chars = name === "qwen3" || name === "demo" ? ["a", "=", " ", "\n", "中", "😀", "\u0378"] : ["="];
      for (const char of chars) {
        const small = time(char.repeat(50_000 / char.length));
        const large = time(char.repeat(500_000 / char.length));
        // Quadratic cost would be a hundredfold.
        expect(large / Math.max(small, 5), JSON.stringify(char)).toBeLessThan(50);
      }
    });

    it("an id without a token decodes to nothing and does no harm", async () => {
      const tokenizer = await openVocabulary(name);
      const text = "still here";
      const ids = [...tokenizer.encodePlain(text), tokenizer.vocabSize + 5, 2 ** 31 - 1, -1];
      expect(tokenizer.decode(ids)).toBe(text);
      expect(tokenizer.decode(tokenizer.encodePlain(text))).toBe(text);
    });

    it("streamed text never holds half a character and adds up to the whole", async () => {
      const tokenizer = await openVocabulary(name);
      const text = "a 😀👩‍👩‍👧 é 中文 \u{1f469}\u200d!";
      const stream = tokenizer.streamingText();
      const parts = [...tokenizer.encodePlain(text)].map((id) => stream.push(id));
      expect(parts.join("") + stream.end()).toBe(text);
      expect(parts.every((part) => !part.includes("\ufffd"))).toBe(true);
    });

    it("chunks encode as their concatenation, also where a token spans two", async () => {
      const tokenizer = await openVocabulary(name);
      const tokens = tokenizer.added.map((token) => token.text);
      const part = fc.oneof(
        fc.constantFrom(...tokens),
        fc.string({ maxLength: 12 }),
        fc.constantFrom(" ", "\n", "word "),
      );
      fc.assert(
        fc.property(fc.array(part, { maxLength: 30 }), fc.array(fc.nat(400), { maxLength: 8 }), (parts, cuts) => {
          const text = parts.join("");
          const places = [0, ...cuts.map((cut) => Math.min(cut, text.length)).sort((a, b) => a - b), text.length];
          const chunks = places.slice(1).map((end, i) => text.slice(places[i], end));
          expect(Array.from(tokenizer.encodeChunks(chunks).ids)).toEqual(Array.from(tokenizer.encode(text)));
        }),
        { numRuns: 200 },
      );
    });
  });
}
