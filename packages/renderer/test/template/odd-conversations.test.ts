/** Conversations that no well-behaved client sends, and those that clients send in more than one form, against what the reference makes of them. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { FAMILIES } from "../../src/families/families.js";
import { readConversation, readingRules } from "../../src/template/read-conversation.js";
import { ValueGuard } from "../../src/tokenizer/value-guard.js";
import { templatePath } from "../byte-bundles.js";
import { type GoldenConversation, neutralMessages, type OddGolden } from "../conversations.js";
import { templateRenderer } from "../render-family.js";
import { readGolden, sha256 } from "../vocabularies.js";

const odd = readGolden<OddGolden>("odd.json.gz");

/** What the family writes, or null where it refuses. */
function writer(family: string, guard: ValueGuard) {
  const rules = FAMILIES[family]!;
  const { writer } = rules;
  if (writer.kind === "template") return templateRenderer(family, guard);
  const reading = readingRules(rules, readFileSync(templatePath(family), "utf8"));
  return ({ messages, tools, add_generation_prompt }: GoldenConversation): string[] | null => {
    try {
      const read = readConversation(neutralMessages(messages), reading);
      return writer.write(read, tools, guard, {
        date: "2026-11-30",
        generationPrompt: add_generation_prompt,
        given: {},
      });
    } catch {
      return null;
    }
  };
}

describe.each(Object.keys(odd.families))("%s", (family) => {
  const wanted = odd.families[family]!;

  it(`writes ${odd.conversations.length} odd conversations as the reference does, and refuses the same`, () => {
    const write = writer(family, new ValueGuard([]));
    for (const [i, conversation] of odd.conversations.entries()) {
      const text = write(conversation)?.join("");
      const where = `${family}: ${conversation.name}`;
      if (wanted[i]?.text !== undefined) expect(text, where).toBe(wanted[i].text);
      expect(text === undefined ? undefined : sha256(text), where).toBe(wanted[i]?.sha256);
    }
  });
});
