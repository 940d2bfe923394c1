import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type Ends,
  editObject,
  findSlice,
  parseEngineJson,
  sliceArray,
  sliceObject,
  sliceText,
} from "../../src/json/slices.js";

describe("slicing JSON", () => {
  it("finds every member of any object, in order, as JSON.parse reads it", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.constantFrom(undefined, 1, "\t"), (object, indent) => {
        const text = ` ${JSON.stringify(object, null, indent)}\n`;
        const slices = sliceObject(text);
        expect(slices.map((slice) => [slice.key, JSON.parse(sliceText(text, slice))])).toEqual(
          Object.entries(JSON.parse(text) as object),
        );
      }),
    );
  });

  it("finds every item of any array", () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue()), (array) => {
        const text = JSON.stringify(array, null, 1);
        expect(sliceArray(text).map(({ start, end }) => JSON.parse(text.slice(start, end)))).toEqual(JSON.parse(text));
      }),
    );
  });

  it("cuts what it walked over before as it would cut it afresh, and does not walk over it again", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(undefined, "\t"), (value, indent) => {
        const text = JSON.stringify({ first: value, choices: [{ inner: { deep: [value] } }, value] }, null, indent);
        const ends: Ends = new Map();
        const choices = findSlice(sliceObject(text, 0, ends), "choices")!.valueStart;
        const noted = ends.size;
        const items = sliceArray(text, choices, ends);
        expect(items).toEqual(sliceArray(text, choices));
        expect(sliceObject(text, items[0]!.start, ends)).toEqual(sliceObject(text, items[0]!.start));
        expect(ends.size).toBe(noted);
        for (const [start, end] of ends) expect(() => JSON.parse(text.slice(start, end)) as unknown).not.toThrow();
      }),
    );
  });

  it("lets the last of duplicate keys win, also when one is spelled with escapes", () => {
    const text = '{"a":1,"\\u0061":2}';
    expect(sliceText(text, findSlice(sliceObject(text), "a")!)).toBe("2");
    expect(JSON.parse(editObject(text, new Map([["a", "3"]])))).toEqual({ a: 3 });
    expect(editObject(text, new Map([["a", "3"]]))).toBe('{"\\u0061":3}');
  });

  it("finds the end of a string of any length, wherever its escapes stand", () => {
    for (let length = 0; length < 80; length++) {
      for (const filler of ["x", "\\", '"', "\\\\x", '\\"', "é", "["]) {
        const value = filler.repeat(length);
        const text = JSON.stringify({ [`k${value}`]: value, after: [value] });
        const slices = sliceObject(text);
        expect(slices.map((slice) => JSON.parse(sliceText(text, slice)) as unknown)).toEqual([value, [value]]);
        expect(() => sliceObject(text.slice(0, slices[0]!.valueEnd - 1))).toThrow(/invalid JSON/);
      }
    }
  });

  it("refuses what is cut, and terminates", () => {
    const text = '{"a":[1,{"b":"x\\"y"}],"c":null}';
    for (let end = 0; end < text.length; end++) expect(() => sliceObject(text.slice(0, end))).toThrow(/invalid JSON/);
  });
});

describe("editing an object", () => {
  it("keeps every other byte: number spelling, big integers, key order, spaces, __proto__", () => {
    const text = '{ "n": 1.0e3, "big": 10000000000000001 , "__proto__": {"x":1}, "2": 1, "1" :\t"é\\u00e9" }';
    expect(editObject(text, new Map())).toBe(text);
    expect(editObject(text, new Map([["big", null]]))).toBe(
      '{ "n": 1.0e3 , "__proto__": {"x":1}, "2": 1, "1" :\t"é\\u00e9" }',
    );
    expect(
      editObject(
        text,
        new Map([
          ["n", "0"],
          ["new", "[1]"],
        ]),
      ),
    ).toBe('{ "n": 0, "big": 10000000000000001 , "__proto__": {"x":1}, "2": 1, "1" :\t"é\\u00e9","new":[1] }');
  });

  it("equals an edit of the parsed value for any object and any edits", () => {
    const key = fc.constantFrom("a", "b", "c", "d");
    fc.assert(
      fc.property(
        fc.dictionary(key, fc.jsonValue()),
        fc.dictionary(key, fc.option(fc.jsonValue())),
        (object, edits) => {
          const map = new Map(
            Object.entries(edits).map(([name, value]) => [name, value === null ? null : JSON.stringify(value)]),
          );
          const expected = new Map(Object.entries(JSON.parse(JSON.stringify(object)) as object));
          for (const [name, text] of map) {
            if (text === null) expected.delete(name);
            else expected.set(name, JSON.parse(text));
          }
          expect(JSON.parse(editObject(JSON.stringify(object), map))).toEqual(Object.fromEntries(expected));
        },
      ),
    );
  });

  it("edits an object inside a longer text as it would on its own", () => {
    const key = fc.constantFrom("a", "b", "c");
    const edits = fc.dictionary(key, fc.option(fc.constantFrom("1", '"x"', "[]")));
    fc.assert(
      fc.property(fc.dictionary(key, fc.jsonValue()), edits, fc.jsonValue(), (object, changes, beside) => {
        const text = JSON.stringify([beside, object, beside], null, 1);
        const place = sliceArray(text)[1]!;
        const map = new Map(Object.entries(changes));
        const alone = editObject(text.slice(place.start, place.end), map);
        expect(editObject(text, map, sliceObject(text, place.start), place)).toBe(alone);
      }),
    );
  });

  it("edits empty objects", () => {
    expect(editObject("{}", new Map([["a", "1"]]))).toBe('{"a":1}');
    expect(editObject('{"a":1}', new Map([["a", null]]))).toBe("{}");
  });
});

describe("an engine's JSON", () => {
  it("may hold bare NaN and Infinity, which come out as text, but not inside strings", () => {
    expect(parseEngineJson('{"a":NaN,"b":[-Infinity,Infinity],"c":"NaN, -Infinity","d":-1.5}')).toEqual({
      a: "NaN",
      b: ["-Infinity", "Infinity"],
      c: "NaN, -Infinity",
      d: -1.5,
    });
    expect(() => parseEngineJson("NaNcy")).toThrow();
  });
});
