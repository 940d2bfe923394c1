import { describe, expect, it } from "vitest";
import { writeHarmony } from "../../src/harmony/harmony-writer.js";
import { ValueGuard } from "../../src/tokenizer/value-guard.js";
import { type GoldenConversation, neutralMessages } from "../conversations.js";
import { idsDigest, openVocabulary, readGolden, vocabularyMissing } from "../vocabularies.js";

interface HarmonyGolden {
  conversations: { ids: string; text: string }[];
  schemas: { schema: string | null; ids: string; text: string }[];
}

const golden = readGolden<HarmonyGolden>("harmony.json.gz");
const conversations = readGolden<GoldenConversation[]>("conversations.json.gz");
const write = (
  conversation: Pick<GoldenConversation, "messages" | "add_generation_prompt">,
  tools: GoldenConversation["tools"],
  guard: ValueGuard,
) =>
  writeHarmony(neutralMessages(conversation.messages), tools, guard, {
    date: "2026-11-30",
    reasoningEffort: "medium",
    generationPrompt: conversation.add_generation_prompt,
  });

function schemaTools(schema: string | null) {
  const tool =
    schema === null
      ? { name: "tool", description: "Does\nthings" }
      : { name: "tool", description: "Does\nthings", parameters: schema };
  return [tool, { name: "other", description: "", parameters: "{}" }] as GoldenConversation["tools"];
}
const ONE = { messages: [{ role: "user" as const, content: "x" }], add_generation_prompt: true };

describe("gpt-oss", () => {
  it.each(golden.schemas)("writes tools as the harmony library does: $schema", ({ schema, text }) => {
    expect(write(ONE, schemaTools(schema), new ValueGuard([])).join("")).toBe(text);
  });

  it(`writes all ${conversations.length} conversations as the harmony library does`, () => {
    for (const [i, conversation] of conversations.entries()) {
      const text = write(conversation, conversation.tools, new ValueGuard([])).join("");
      expect(text.slice(0, 6000), conversation.name).toBe([...golden.conversations[i]!.text].join("").slice(0, 6000));
    }
  });

  it.skipIf(vocabularyMissing("gpt-oss"))("gives the harmony library's ids", async () => {
    const tokenizer = await openVocabulary("gpt-oss");
    for (const [i, conversation] of conversations.entries()) {
      const chunks = write(conversation, conversation.tools, tokenizer.guard);
      expect(idsDigest(tokenizer.encodeChunks(chunks).ids), conversation.name).toBe(golden.conversations[i]!.ids);
    }
    for (const { schema, ids } of golden.schemas) {
      expect(idsDigest(tokenizer.encodeChunks(write(ONE, schemaTools(schema), tokenizer.guard)).ids)).toBe(ids);
    }
  });
});
