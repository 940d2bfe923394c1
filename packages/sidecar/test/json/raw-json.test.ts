import { TitoError } from "@tito/format";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type JsonNode, parseJsonBody, parseJsonText, rawText } from "../../src/json/raw-json.js";

function plain(node: JsonNode): unknown {
  switch (node.type) {
    case "null":
      return null;
    case "array":
      return node.items.map(plain);
    case "object":
      return Object.fromEntries([...node.members].map(([key, value]) => [key, plain(value)]));
    default:
      return node.value;
  }
}

function accepts(parse: () => unknown): boolean {
  try {
    parse();
    return true;
  } catch {
    return false;
  }
}

describe("raw JSON", () => {
  test("C3: number spelling, key order, integer-like keys and spaces survive in the raw text", () => {
    const text = '{ "10": 1e3, "2": 1.0,\n"b" : 12345678901234567890, "a": "\\u00e9\\/" , "z": [ -0, 0.10 ] }';
    const node = parseJsonText(`{"input":${text}}`);
    expect(node.type).toBe("object");
    if (node.type !== "object") return;
    const input = node.members.get("input")!;
    expect(rawText(input)).toBe(text);
    expect(input.type === "object" && [...input.members.keys()]).toEqual(["10", "2", "b", "a", "z"]);
  });

  test("a __proto__ key is an ordinary key", () => {
    const node = parseJsonText('{"__proto__":{"x":1}}');
    expect(node.type === "object" && node.members.has("__proto__")).toBe(true);
  });

  test("reads what JSON.parse reads", () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 6 }), fc.constantFrom("", " ", "\n\t"), (text, space) => {
        const spaced = space + text + space;
        expect(plain(parseJsonText(spaced))).toEqual(JSON.parse(spaced));
      }),
    );
  });

  test("accepts and refuses the same texts as JSON.parse", () => {
    const piece = fc.constantFrom(..."[]{},:\"\\0123.eE+-tfn u'\n", "true", "null", '"a"', '"\\u00', "\u0001", "01");
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
        const text = pieces.join("");
        expect(accepts(() => parseJsonText(text))).toBe(accepts(() => JSON.parse(text)));
      }),
      { numRuns: 3000 },
    );
  });

  test("names the offset of the first wrong character", () => {
    expect(() => parseJsonText('{"a" 1}')).toThrow(/offset 5: expected ":"/);
    expect(() => parseJsonText('{"a":1} x')).toThrow(/offset 8: expected the end/);
    expect(() => parseJsonText('"abc')).toThrow(/closing quote/);
  });

  test("refuses bytes that are not UTF-8 and nesting without end", () => {
    expect(() => parseJsonBody(Uint8Array.of(0x22, 0xff, 0x22))).toThrow(/UTF-8/);
    try {
      parseJsonText("[".repeat(100_000));
      expect.unreachable();
    } catch (error) {
      expect(TitoError.is(error) && error.code).toBe("bad_request");
    }
  });
});
