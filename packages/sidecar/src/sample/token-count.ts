/** How many prompt ids a chat will have, asked of the engine before inference (vLLM: `POST /tokenize`, chat form). */
import { TitoError } from "@tito/format";
import { asCount, asObject } from "../json/narrow.js";
import { findSlice, parseEngineJson, sliceObject, sliceText } from "../json/slices.js";
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

/** @throws TitoError `bad_request` with the engine's words, or `upstream_invalid`. */
export async function countPromptTokens(upstream: Upstream, model: string, chatBody: string): Promise<number> {
  const slices = sliceObject(chatBody);
  const members = SHARED.flatMap((name) => {
    const slice = findSlice(slices, name);
    return slice === undefined ? [] : [`${JSON.stringify(name)}:${sliceText(chatBody, slice)}`];
  });
  const body = `{${[`"model":${JSON.stringify(model)}`, ...members].join(",")}}`;
  const response = await upstream.send({ method: "POST", path: "/tokenize", body });
  if (response.status !== 200) {
    const { error, status } = await readFailure(response);
    throw new TitoError(
      status < 500 ? "bad_request" : "upstream_unavailable",
      `the engine can not count the prompt's tokens: ${error.message}`,
    );
  }
  const text = await response.text();
  const count = asCount(asObject(parseEngineJson(text))?.count);
  if (count === null) throw new TitoError("upstream_invalid", "the engine's tokenize route answers without a count");
  return count;
}
