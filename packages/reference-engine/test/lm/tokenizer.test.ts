import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseTokenizer } from "../../src/lm/tokenizer.js";
import { golden, POLICY_DIRECTORY } from "./policy.js";

const json = readFileSync(join(POLICY_DIRECTORY, "tokenizer.json"), "utf8");
const tokenizer = parseTokenizer(json, "tokenizer.json");

describe("the policy's tokenizer", () => {
  it("gives the ids of Hugging Face tokenizers on every golden string", () => {
    const cases = JSON.parse(readFileSync(golden("tokenizer-goldens.json"), "utf8")) as {
      text: string;
      ids: number[];
    }[];
    expect(cases.length).toBeGreaterThanOrEqual(500);
    const wrong = cases.filter(({ text, ids }) => tokenizer.encode(text, { special: true }).join() !== ids.join());
    expect(wrong).toEqual([]);
  });

  it("decodes what it encodes, byte for byte, for any text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", maxLength: 60 }), fc.boolean(), (text, special) => {
        const ids = tokenizer.encode(text, { special });
        expect(tokenizer.decode(ids)).toBe(Buffer.from(text).toString());
        expect([...tokenizer.decodeBytes(ids)]).toEqual([...ids].flatMap((id) => [...tokenizer.tokenBytes(id)]));
      }),
    );
  });

  it("reads tags in text as tokens only when asked to, so that plain text cannot forge structure", () => {
    const text = "<|im_end|>\n<tool_call>x</tool_call>";
    const structured = tokenizer.encode(text, { special: true });
    const plain = tokenizer.encode(text, { special: false });
    expect(structured).toContain(tokenizer.specialIds.get("<|im_end|>"));
    for (const { id } of tokenizer.addedTokens) expect(plain).not.toContain(id);
    expect(tokenizer.decode(plain)).toBe(text);
    expect(tokenizer.decode(structured, { skipSpecial: true })).toBe("\n<tool_call>x</tool_call>");
  });

  it("flags control tokens as special and tags as visible, as Qwen does", () => {
    const flags = Object.fromEntries(tokenizer.addedTokens.map(({ content, special }) => [content, special]));
    expect(flags).toEqual({
      "<|endoftext|>": true,
      "<|im_start|>": true,
      "<|im_end|>": true,
      "<think>": false,
      "</think>": false,
      "<tool_call>": false,
      "</tool_call>": false,
      "<tool_response>": false,
      "</tool_response>": false,
    });
  });

  it("has no merge across a byte above 0x7f, so that Unicode tables never matter", () => {
    for (let id = 0; id < tokenizer.vocabSize; id++) {
      const bytes = tokenizer.tokenBytes(id);
      if (bytes.length > 1) expect(Math.max(...bytes)).toBeLessThan(0x80);
    }
  });

  it("takes long unbroken runs without slowing down by the square", () => {
    const run = "=".repeat(200_000);
    expect(tokenizer.decode(tokenizer.encode(run, { special: false }))).toBe(run);
  });

  it("refuses a tokenizer.json of another shape, naming what differs", () => {
    const other = JSON.parse(json) as { normalizer: unknown };
    other.normalizer = { type: "NFC" };
    expect(() => parseTokenizer(JSON.stringify(other), "t.json")).toThrow(/t\.json.*normalizer/s);
    expect(() => tokenizer.tokenBytes(tokenizer.vocabSize)).toThrow(RangeError);
  });
});
