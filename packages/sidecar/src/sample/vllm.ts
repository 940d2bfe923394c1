/** vLLM's chat endpoint: which fields ask for exact ids and log probabilities, added to a body that stays otherwise as it is. */
import { editObject, findSlice, sliceObject, sliceText } from "../json/slices.js";

export const VLLM_CHAT_PATH = "/v1/chat/completions";

export interface VllmFields {
  model: string;
  stream: boolean;
  /** Sampling fields that the harness left out, as JSON text. */
  sampling: ReadonlyMap<string, string>;
  /** Lowers an output limit of the body, or sets one where there is none; null leaves it alone. */
  maxOutputTokens: number | null;
}

/** `body` with our fields set; every other member keeps the harness's own JSON text. */
export function vllmChatBody(body: string, fields: VllmFields): string {
  const edits = new Map<string, string | null>(fields.sampling);
  edits.set("model", JSON.stringify(fields.model));
  edits.set("stream", String(fields.stream));
  edits.set("logprobs", "true");
  edits.set("return_token_ids", "true");
  edits.set("stream_options", fields.stream ? usageOption(body) : null);
  if (fields.maxOutputTokens !== null) {
    edits.set("max_tokens", null);
    edits.set("max_completion_tokens", String(fields.maxOutputTokens));
  }
  return editObject(body, edits);
}

/** Usage is always asked for: it is what the ids are counted against. */
function usageOption(body: string): string {
  const own = findSlice(sliceObject(body), "stream_options");
  const text = own === undefined ? "null" : sliceText(body, own);
  return text.startsWith("{") ? editObject(text, new Map([["include_usage", "true"]])) : '{"include_usage":true}';
}
