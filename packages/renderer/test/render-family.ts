/** A family's prompts, written with a guard of the test's choice: by its template, or by code. */
import { readFileSync } from "node:fs";
import { type AnyRuntimeValue, convertToRuntimeValues } from "@huggingface/jinja";
import type { ToolDefinition } from "@tito/format";
import { FAMILIES } from "../src/families/families.js";
import { ChatTemplate } from "../src/template/chat-template.js";
import { MessageValues } from "../src/template/message-values.js";
import { readConversation, readingRules } from "../src/template/read-conversation.js";
import type { ValueGuard } from "../src/tokenizer/value-guard.js";
import { templatePath } from "./byte-bundles.js";
import { type GoldenConversation, neutralMessages } from "./conversations.js";

const DATE = "2026-11-30";

/** Which vocabulary proves a family's ids. */
export const VOCABULARY_OF: Record<string, string> = {
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

/** Renders by the template, also where prompts are written by code; null where it refuses. */
export function templateRenderer(family: string, guard: ValueGuard) {
  const rules = FAMILIES[family]!;
  const template = new ChatTemplate(readFileSync(templatePath(family), "utf8"), rules.template_variables, DATE);
  const values = new MessageValues(rules.messages, guard);
  const reading = readingRules(rules, readFileSync(templatePath(family), "utf8"));
  return (conversation: GoldenConversation): string[] | null => {
    const variables = new Map<string, AnyRuntimeValue>([
      ["messages", values.messages(readConversation(neutralMessages(conversation.messages), reading))],
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
