import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { canonicalJson, sameJson } from "../src/index.js";

describe("JSON values by their text", () => {
  it.each([
    ['{"a":1,"b":"é"}', '{ "b" : "\\u00e9", "a": 1.0 }', true],
    ["1e3", "1000", true],
    ["1E+3", "1000.000", true],
    ["-0", "0", true],
    ["0.10", "1e-1", true],
    ["100", "1e2", true],
    ["10000000000000001", "10000000000000000", false],
    ["0.1", "0.10000000000000001", false],
    ["[1,2]", "[2,1]", false],
    ['{"a":1,"a":2}', '{"a":2}', true],
    ['"1"', "1", false],
    ['{"a":', '{"a": ', false],
    ['{"a":', '{"a":', true],
    ['{"__proto__":1}', "{}", false],
    ["", "{}", false],
    ['"\\ud800"', '"\\uD800"', true],
  ])("%s and %s: %s", (a, b, same) => {
    expect(sameJson(a, b)).toBe(same);
  });

  it("refuses what is not JSON, and what is nested too deeply", () => {
    for (const text of ["", "{", "[1,]", "{a:1}", "01", "1.", "+1", "nul", "[1] x", '"a\nb"', "{'a':1}", '{"a" 1}'])
      expect([text, canonicalJson(text)]).toEqual([text, null]);
    expect(canonicalJson("[".repeat(50_000))).toBeNull();
    expect(canonicalJson(`${"[".repeat(150)}${"]".repeat(150)}`)).not.toBeNull();
  });

  it("agrees with JSON.parse on whether a text is JSON, and survives any spelling of a value", () => {
    fc.assert(
      fc.property(fc.json(), fc.nat(4), (text, indent) => {
        const value = JSON.parse(text) as unknown;
        const spelled = JSON.stringify(value, null, indent);
        expect(canonicalJson(text)).not.toBeNull();
        expect(sameJson(text, spelled)).toBe(true);
        expect(JSON.stringify(JSON.parse(spelled))).toBe(JSON.stringify(value));
      }),
    );
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'{}[]",:0123456789.eE-+truefalsn \\u') }), (text) => {
        let parses = true;
        try {
          JSON.parse(text);
        } catch {
          parses = false;
        }
        expect(canonicalJson(text) !== null).toBe(parses);
      }),
      { numRuns: 2000 },
    );
  });

  it("numbers are equal exactly when their decimal values are", () => {
    const digits = fc.tuple(fc.boolean(), fc.bigInt({ min: 1n, max: 10n ** 25n }), fc.integer({ min: -30, max: 30 }));
    fc.assert(
      fc.property(digits, ([negative, mantissa, power]) => {
        const sign = negative ? "-" : "";
        const shifted = `${sign}${mantissa}00e${power - 2}`;
        expect(sameJson(`${sign}${mantissa}e${power}`, shifted)).toBe(true);
        expect(sameJson(`${sign}${mantissa}e${power}`, `${sign}${mantissa + 1n}e${power}`)).toBe(false);
      }),
    );
  });
});
