/** How many prompt ids a chat will have, asked of the engine before inference (vLLM: `POST /tokenize`, chat form). */
import { type ErrorCode, TitoError } from "@tito/format";
import type { DialectError } from "../dialect/neutral.js";
import { asCount, asObject } from "../json/narrow.js";
import { editObject, findSlice, parseEngineJson, sliceArray, sliceObject, sliceText } from "../json/slices.js";
import { readFailure } from "./engine-failure.js";
import type { Upstream } from "./upstream.js";

/** Members of a chat body that the tokenize route knows. */
const SHARED = [
  "messages",
  "tools",
  "chat_template",
  "chat_template_kwargs",
  "add_generation_prompt",
  "continue_final_message",
  "add_special_tokens",
];

const REASONING = ["reasoning", "reasoning_content"] as const;

/** Reasoning of every message under both of its names: vLLM's tokenize route reads `reasoning_content` only, its chat route either. */
function withBothNames(messages: string): string {
  if (!messages.startsWith("[")) return messages;
  const items = sliceArray(messages).map(({ start, end }) => {
    const message = messages.slice(start, end);
    if (!message.startsWith("{")) return message;
    const slices = sliceObject(message);
    const [first, second] = REASONING.map((name) => findSlice(slices, name));
    if ((first === undefined) === (second === undefined)) return message;
    const missing = first === undefined ? REASONING[0] : REASONING[1];
    return editObject(message, new Map([[missing, sliceText(message, (first ?? second)!)]]));
  });
  return `[${items.join(",")}]`;
}

/** @throws TitoError with the engine's words: `upstream_unavailable` where asking again may help, else `bad_request`, `upstream_rejected` or `upstream_invalid`. */
export async function countPromptTokens(upstream: Upstream, model: string, chatBody: string): Promise<number> {
  const slices = sliceObject(chatBody);
  const members = SHARED.flatMap((name) => {
    const slice = findSlice(slices, name);
    if (slice === undefined) return [];
    const value = sliceText(chatBody, slice);
    return [`${JSON.stringify(name)}:${name === "messages" ? withBothNames(value) : value}`];
  });
  const body = `{${[`"model":${JSON.stringify(model)}`, ...members].join(",")}}`;
  const response = await upstream.send({ method: "POST", path: "/tokenize", body, repeatable: true });
  if (response.status < 200 || response.status > 299) {
    const { error } = await readFailure(response);
    throw new TitoError(codeOf(error), `the engine can not count the prompt's tokens: ${error.message}`);
  }
  const count = readCount(await response.text());
  if (count === null) throw new TitoError("upstream_invalid", "the engine's tokenize route answers without a count");
  return count;
}

/** A failure of the engine is not the harness's: only what the engine says of the request itself is. */
function codeOf({ kind, retryable }: DialectError): ErrorCode {
  if (retryable) return "upstream_unavailable";
  return kind === "bad_request" || kind === "context_overflow" ? kind : "upstream_rejected";
}

function readCount(text: string): number | null {
  try {
    return asCount(asObject(parseEngineJson(text))?.count);
  } catch {
    return null;
  }
}
