import { describe, expect, it } from "vitest";
import { encodeWritten } from "../../src/encoders/encode-written.js";
import { FAMILIES } from "../../src/families/families.js";
import { readConversation, readingRules } from "../../src/template/read-conversation.js";
import { ValueGuard } from "../../src/tokenizer/value-guard.js";
import { openByteRenderer } from "../byte-bundles.js";
import { type GoldenConversation, neutralMessages } from "../conversations.js";
import { idsDigest, openVocabulary, readGolden, sha256, vocabularyMissing } from "../vocabularies.js";

interface Rendered {
  sha256: string;
  text?: string;
  ids?: string;
}
interface EncoderRun {
  given: Record<string, string | boolean>;
  conversations: (Rendered | null)[];
}

const conversations = readGolden<GoldenConversation[]>("conversations.json.gz");

function write(family: string, guard: ValueGuard, conversation: GoldenConversation, given: EncoderRun["given"]) {
  const { writer } = FAMILIES[family]!;
  if (writer.kind === "template") throw new Error(`${family} is written by its template`);
  try {
    const messages = readConversation(neutralMessages(conversation.messages), readingRules(FAMILIES[family]!, ""));
    return writer.write(messages, conversation.tools, guard, {
      date: "2026-11-30",
      generationPrompt: conversation.add_generation_prompt,
      given: { ...given, ...conversation.kwargs },
    });
  } catch (error) {
    expect(error, conversation.name).toMatchObject({ code: "bad_request" });
    return null;
  }
}

const cases = ["deepseek-v3.2", "deepseek-v4", "kimi-k3"].flatMap((family) =>
  readGolden<EncoderRun[]>(`encoder-${family}.json.gz`).map((run) => ({
    family,
    given: JSON.stringify(run.given),
    run,
  })),
);

describe.each(cases)("$family $given", ({ family, run }) => {
  it(`writes all ${conversations.length} conversations as the vendor's encoder does, and refuses the same`, () => {
    for (const [i, conversation] of conversations.entries()) {
      const wanted = run.conversations[i];
      const text = write(family, new ValueGuard([]), conversation, run.given)?.join("");
      if (wanted === null || wanted === undefined) expect(text, conversation.name).toBeUndefined();
      else if (wanted.text !== undefined) expect(text, conversation.name).toBe(wanted.text);
      else expect(text === undefined ? null : sha256(text), conversation.name).toBe(wanted.sha256);
    }
  });
});

const VOCABULARIES = ["deepseek-v4", "kimi-k3"];

for (const family of VOCABULARIES) {
  describe.skipIf(vocabularyMissing(family))(`${family} vocabulary`, () => {
    it("gives the ids of the vendor's encoder", async () => {
      const tokenizer = await openVocabulary(family);
      for (const run of readGolden<EncoderRun[]>(`encoder-${family}.json.gz`)) {
        for (const [i, conversation] of conversations.entries()) {
          const written = write(family, tokenizer.guard, conversation, run.given);
          const ids =
            written === null ? undefined : idsDigest(encodeWritten(FAMILIES[family]!.writer, tokenizer, written).ids);
          expect(ids, conversation.name).toBe(run.conversations[i]?.ids);
        }
      }
    });
  });
}

it("a turn with an argument whose name begins with punctuation is tokenized apart from the quotes around it", async () => {
  const renderer = await openByteRenderer("kimi-k3");
  const call = { id: "c", name: "t", arguments: '{"\'s": "x"}' };
  const messages = [{ role: "assistant" as const, content: "", tool_calls: [call] }];
  const segments = renderer.chunks(messages, []);
  expect(segments).toContain("'s");
  const alone = segments.flatMap((segment) => Array.from(renderer.tokenizer.encode(segment)));
  expect(Array.from(renderer.render(messages, []).ids)).toEqual(alone);
});

describe.each(readGolden<EncoderRun[]>("encoder-glm-5.3.json.gz"))("glm-5.3 $given", (run) => {
  it("the template writes what the vendor's reference renderer writes", async () => {
    const renderer = await openByteRenderer("glm-5.3");
    for (const [i, { name, messages, tools, add_generation_prompt }] of conversations.entries()) {
      const options = { generationPrompt: add_generation_prompt, templateArguments: run.given };
      const text = renderer.chunks(neutralMessages(messages), tools, options).join("");
      expect(sha256(renderer.tokenizer.guard.restore(text).text), name).toBe(run.conversations[i]?.sha256);
    }
  });
});
