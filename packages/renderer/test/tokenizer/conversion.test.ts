import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { convertTiktokenModel } from "../../src/tokenizer/tiktoken-model.js";
import { convertTokenizerJson } from "../../src/tokenizer/tokenizer-data.js";
import { byteTokenizerJson } from "../byte-bundles.js";

const RANKS = Array.from({ length: 256 }, (_, byte) => `${Buffer.of(byte).toString("base64")} ${byte}`).join("\n");
const named = (tokens: Record<string, object>): string => JSON.stringify({ added_tokens_decoder: tokens });

type Json = Record<string, unknown>;
/** A whole tokenizer.json with one change. */
function changed(change: (file: Json & { model: Json }) => void): string {
  const file = JSON.parse(byteTokenizerJson("demo"));
  change(file);
  return JSON.stringify(file);
}

describe("a tokenizer.json", () => {
  it.each<[string, (file: Json & { model: Json }) => void, string]>([
    ["no pre-tokenizer", (file) => (file.pre_tokenizer = null), "pre-tokenizer that is not known"],
    [
      "another pre-tokenizer",
      (file) => (file.pre_tokenizer = { type: "Metaspace" }),
      "pre-tokenizer that is not known",
    ],
    ["another normalizer", (file) => (file.normalizer = { type: "NFKC" }), "normalizer NFKC"],
    ["byte fallback", ({ model }) => (model.byte_fallback = true), "byte fallback"],
    [
      "merges out of order",
      ({ model }) => (model.merges = [...(model.merges as string[])].reverse()),
      "is not in the order",
    ],
    ["a token that no merge makes", ({ model }) => (model.merges as string[]).pop(), "cannot be reached by merges"],
    ["a vocabulary of another kind", ({ model }) => (model.vocab = []), "no vocabulary"],
    ["added tokens without ids", (file) => (file.added_tokens = [{ content: "<x>" }]), "added tokens"],
  ])("with %s is refused in words", (_name, change, words) => {
    expect(() => convertTokenizerJson(changed(change))).toThrow(words);
  });

  it("may leave out normalizer and added tokens", () => {
    const data = convertTokenizerJson(
      changed((file) => {
        delete file.normalizer;
        delete file.added_tokens;
      }),
    );
    expect(data).toMatchObject({ normalizer: null, added_tokens: [] });
  });

  it("with ignore_merges may hold a token that no merge makes: a whole piece is that token there too", () => {
    const text = changed(({ model }) => {
      (model.merges as string[]).pop();
      model.ignore_merges = true;
    });
    expect(convertTokenizerJson(text).ranks).toBe(convertTokenizerJson(byteTokenizerJson("demo")).ranks);
  });

  it("never fails but with an error of ours, whatever JSON it is", () => {
    fc.assert(
      fc.property(
        fc.json(),
        fc.constantFrom("model", "pre_tokenizer", "added_tokens", "normalizer", ""),
        (json, key) => {
          const text = key === "" ? json : changed((file) => (file[key] = JSON.parse(json)));
          try {
            convertTokenizerJson(text);
          } catch (error) {
            expect(error).toMatchObject({ code: expect.stringMatching(/^(unsupported|bundle_invalid)$/) });
          }
        },
      ),
    );
  });
});

describe("a tiktoken.model with its configuration", () => {
  it("gives bytes by rank, all named tokens special, Kimi's pre-tokenizer", () => {
    const data = convertTiktokenModel(RANKS, named({ 256: { content: "<|open|>", special: false } }));
    expect(data).toMatchObject({ split: "kimi", normalizer: null });
    expect(data.added_tokens).toEqual([{ id: 256, text: "<|open|>", special: true, second_pass: false }]);
    expect(data.ranks.startsWith("! 0 AA== AQ==")).toBe(true);
  });

  it.each([
    ["a line that is no rank", "AA== x", named({}), "line 1"],
    ["missing bytes", "AA== 0", named({}), "255 single bytes"],
    ["no named tokens", RANKS, "{}", "added_tokens_decoder"],
    ["a configuration that is no JSON", RANKS, "{", "not JSON"],
    ["null for a configuration", RANKS, "null", "added_tokens_decoder"],
    ["a named token without text", RANKS, named({ 256: {} }), "no content"],
    ["a named token with an id of the vocabulary", RANKS, named({ 65: { content: "<x>" } }), "id of tiktoken.model"],
    ["a named token that strips", RANKS, named({ 256: { content: "<x>", lstrip: true } }), "strips"],
  ])("with %s is refused in words", (_name, model, config, words) => {
    expect(() => convertTiktokenModel(model, config)).toThrow(words);
  });
});
