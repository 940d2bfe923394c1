import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type AnswerPiece, StopStrings } from "../../src/parse/stop-strings.js";

const letters = (value: string): AnswerPiece[] => [...value].map((text) => ({ marker: null, text }));

function run(pieces: AnswerPiece[], stops: string[], include = false) {
  const finder = new StopStrings(stops, include);
  let shown = "";
  for (const piece of pieces) {
    const { pieces: now, match } = finder.push(piece);
    shown += now.map(({ text }) => text).join("");
    if (match !== null) return { shown, stop: match.stopString };
  }
  return {
    shown:
      shown +
      finder
        .flush()
        .map(({ text }) => text)
        .join(""),
    stop: null,
  };
}

describe("stop strings", () => {
  it("cut the text where the first of them starts", () => {
    expect(run(letters("one\n\ntwo END"), ["END", "\n\n"])).toEqual({ shown: "one", stop: "\n\n" });
    expect(run(letters("one END two"), ["END"], true)).toEqual({ shown: "one END", stop: "END" });
  });

  it("never let a part of a stop string out early, and lose nothing when it does not come", () => {
    const alphabet = fc.string({ unit: fc.constantFrom("a", "b", "c"), maxLength: 12 });
    const stops = fc.array(fc.string({ unit: fc.constantFrom("a", "b", "c"), minLength: 1, maxLength: 4 }), {
      maxLength: 3,
    });
    fc.assert(
      fc.property(alphabet, stops, (value, list) => {
        const { shown, stop } = run(letters(value), list);
        if (stop === null) {
          expect(shown).toBe(value);
          expect(list.every((one) => !value.includes(one))).toBe(true);
        } else {
          expect(value.startsWith(shown + stop)).toBe(true);
          expect(list.every((one) => !shown.includes(one))).toBe(true);
        }
      }),
    );
  });

  it("reach across a marker that is visible as text", () => {
    const pieces: AnswerPiece[] = [
      { marker: null, text: "x" },
      { marker: { id: 9, content: "<think>", special: false }, text: "<think>" },
      { marker: null, text: "y" },
    ];
    expect(run(pieces, ["<think>y"])).toEqual({ shown: "x", stop: "<think>y" });
  });
});
