import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type AnyRuntimeValue, convertToRuntimeValues } from "@huggingface/jinja";
import type { ToolDefinition } from "@tito/format";
import { describe, expect, it } from "vitest";
import { FAMILIES } from "../../src/families/families.js";
import { ChatTemplate } from "../../src/template/chat-template.js";
import { MessageValues } from "../../src/template/message-values.js";
import type { Tokenizer } from "../../src/tokenizer/tokenizer.js";
import { ValueGuard } from "../../src/tokenizer/value-guard.js";
import { type GoldenConversation, neutralMessages } from "../conversations.js";
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
const DATE = "2026-11-30";
/** Which vocabulary proves a family's ids. */
const VOCABULARY_OF: Record<string, string> = {
  demo: "demo",
  "qwen2.5": "qwen2.5",
  qwen3: "qwen3",
  "qwen3-coder": "qwen3",
  "qwen3.5": "qwen3.5",
  "glm-4.6": "glm-4.6",
  "glm-4.7": "glm-4.6",
  "glm-5": "glm-5",
  "glm-5.3": "glm-5",
  "kimi-k2": "kimi-k2",
  "kimi-k3": "kimi-k3",
  "deepseek-v3": "deepseek-v3",
  "deepseek-v3.1": "deepseek-v3.1",
  "deepseek-v4": "deepseek-v4",
  "gpt-oss": "gpt-oss",
  "llama-3.1": "llama-3.1",
  "llama-3.2": "llama-3.1",
  "llama-3.3": "llama-3.1",
  "minimax-m2": "minimax-m2",
};

function templatePath(family: string): string {
  const path =
    family === "demo" ? "../../../../fixtures/policy/chat_template.jinja" : `../../templates/${family}.jinja`;
  return fileURLToPath(new URL(path, import.meta.url));
}

function renderer(family: string, guard: ValueGuard) {
  const rules = FAMILIES[family]!;
  const template = new ChatTemplate(readFileSync(templatePath(family), "utf8"), rules.template_variables, DATE);
  const values = new MessageValues(rules.messages, guard);
  return (conversation: GoldenConversation): string[] | null => {
    const variables = new Map<string, AnyRuntimeValue>([
      ["messages", values.messages(neutralMessages(conversation.messages))],
      ["tools", values.tools(conversation.tools as ToolDefinition[])],
      ["add_generation_prompt", convertToRuntimeValues(conversation.add_generation_prompt)],
    ]);
    for (const [name, value] of Object.entries(conversation.kwargs)) variables.set(name, convertToRuntimeValues(value));
    try {
      return template.render(variables);
    } catch {
      return null;
    }
  };
}

const families = Object.keys(FAMILIES).filter((family) => existsSync(goldenPath(`render-${family}.json.gz`)));

describe.each(families)("%s template", (family) => {
  const golden = readGolden<RenderGolden>(`render-${family}.json.gz`);

  it("is the file that the goldens were made from", () => {
    expect(sha256(readFileSync(templatePath(family)))).toBe(golden.template_sha256);
  });

  it(`renders all ${conversations.length} conversations as transformers does, and refuses the same`, () => {
    const render = renderer(family, new ValueGuard([]));
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
    const seen = renderer(family, new ValueGuard([]));
    for (const conversation of conversations) {
      const { messages } = conversation;
      const from = Math.max(1, messages.length - 3);
      for (let n = from; n <= messages.length; n++) {
        const prefix = { ...conversation, messages: messages.slice(0, n) };
        const fresh = renderer(family, new ValueGuard([]));
        expect(seen(prefix)?.join(""), `${family}: ${conversation.name} at ${n}`).toBe(fresh(prefix)?.join(""));
      }
    }
  });

  const vocabulary = VOCABULARY_OF[family];
  it.skipIf(vocabulary === undefined || vocabularyMissing(vocabulary))("gives the reference's ids", async () => {
    const tokenizer: Tokenizer = await openVocabulary(vocabulary!);
    const render = renderer(family, tokenizer.guard);
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
  });
});
