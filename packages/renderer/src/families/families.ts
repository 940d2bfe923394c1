/** The model families: what each one's template wants. */
import type { MessageRules } from "../template/message-values.js";

export interface Family {
  messages: MessageRules;
  template_variables: Record<string, string>;
}
const standard: MessageRules = { arguments: "object", empty_content: "empty", call_ids: "as_given" };
const plain: Family = { messages: standard, template_variables: {} };
const deepseek: Family = { messages: standard, template_variables: { bos_token: "<｜begin▁of▁sentence｜>" } };
const llama: Family = { messages: standard, template_variables: { bos_token: "<|begin_of_text|>" } };
export const FAMILIES: Record<string, Family> = {
  demo: plain,
  "qwen2.5": plain,
  qwen3: plain,
  "qwen3-coder": plain,
  "qwen3.5": plain,
  "glm-4.6": plain,
  "glm-4.7": plain,
  "kimi-k2": { ...plain, messages: { ...standard, call_ids: "positional" } },
  "kimi-k3": plain,
  "deepseek-v3": {
    ...deepseek,
    messages: { arguments: "string", empty_content: "null_with_calls", call_ids: "as_given" },
  },
  "deepseek-v3.1": deepseek,
  "deepseek-v3.2": deepseek,
  "deepseek-v4": deepseek,
  "gpt-oss": plain,
  "llama-3.1": llama,
  "llama-3.2": llama,
  "llama-3.3": llama,
  "minimax-m2": plain,
  "minimax-m3": plain,
};
