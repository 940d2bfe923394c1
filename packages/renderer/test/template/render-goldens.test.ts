import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { FAMILIES } from "../../src/families/families.js";
import type { Tokenizer } from "../../src/tokenizer/tokenizer.js";
import { ValueGuard } from "../../src/tokenizer/value-guard.js";
import { templatePath } from "../byte-bundles.js";
import type { GoldenConversation, OddGolden } from "../conversations.js";
import { templateRenderer, VOCABULARY_OF } from "../render-family.js";
import { goldenPath, idsDigest, openVocabulary, readGolden, sha256, vocabularyMissing } from "../vocabularies.js";

interface Rendered {
  length: number;
  sha256: string;
  text?: string;
  ids?: string;
}
interface RenderGolden {
  template_sha256: string;
  conversations: (Rendered | null)[];
}

const conversations = readGolden<GoldenConversation[]>("conversations.json.gz");
const odd = readGolden<OddGolden>("odd.json.gz");
const families = Object.keys(FAMILIES).filter((family) => existsSync(goldenPath(`render-${family}.json.gz`)));

describe.each(families)("%s template", (family) => {
  const golden = readGolden<RenderGolden>(`render-${family}.json.gz`);

  it("is the file that the goldens were made from", () => {
    expect(sha256(readFileSync(templatePath(family)))).toBe(golden.template_sha256);
  });

  it(`renders all ${conversations.length} conversations as transformers does, and refuses the same`, () => {
    const render = templateRenderer(family, new ValueGuard([]));
    for (const [i, conversation] of conversations.entries()) {
      const chunks = render(conversation);
      const wanted = golden.conversations[i];
      const where = `${family}: ${conversation.name}`;
      if (wanted === null || wanted === undefined) {
        expect(chunks, where).toBeNull();
        continue;
      }
      const text = chunks?.join("");
      if (wanted.text !== undefined) expect(text, where).toBe(wanted.text);
      else expect(text === undefined ? null : sha256(text), where).toBe(wanted.sha256);
    }
  });

  it("renders the same again when it has seen every prefix of the conversation before", () => {
    const seen = templateRenderer(family, new ValueGuard([]));
    for (const conversation of conversations) {
      const { messages } = conversation;
      const from = Math.max(1, messages.length - 3);
      for (let n = from; n <= messages.length; n++) {
        const prefix = { ...conversation, messages: messages.slice(0, n) };
        const fresh = templateRenderer(family, new ValueGuard([]));
        expect(seen(prefix)?.join(""), `${family}: ${conversation.name} at ${n}`).toBe(fresh(prefix)?.join(""));
      }
    }
  });

  const vocabulary = VOCABULARY_OF[family];
  it.skipIf(vocabulary === undefined || vocabularyMissing(vocabulary))("gives the reference's ids", async () => {
    const tokenizer: Tokenizer = await openVocabulary(vocabulary!);
    const render = templateRenderer(family, tokenizer.guard);
    for (const [i, conversation] of conversations.entries()) {
      const wanted = golden.conversations[i];
      const chunks = render(conversation);
      if (wanted?.ids === undefined || chunks === null) {
        expect(wanted?.ids).toBeUndefined();
        continue;
      }
      const encoded = tokenizer.encodeChunks(chunks);
      expect(idsDigest(encoded.ids), `${family}: ${conversation.name}`).toBe(wanted.ids);
      expect(encoded.special_text_escaped).toBe(false);
    }
    if (FAMILIES[family]!.writer.kind !== "template") return;
    for (const [i, conversation] of odd.conversations.entries()) {
      const chunks = render(conversation);
      const encoded = chunks === null ? null : tokenizer.encodeChunks(chunks);
      // The reference finds special tokens in values too.
      if (encoded?.special_text_escaped === true) continue;
      const ids = encoded === null ? undefined : idsDigest(encoded.ids);
      expect(ids, `${family}: ${conversation.name}`).toBe(odd.families[family]![i]?.ids);
    }
  });
});
