/** Ids of what a writer wrote. */
import { type EncodedPrompt, joinIds, type Tokenizer } from "../tokenizer/tokenizer.js";
import type { Writer } from "./prompt-writer.js";

/** Chunks are tokenized as one text; of segments, each is by itself: a mark its token, anything else plain text. */
export function encodeWritten(writer: Writer, tokenizer: Tokenizer, written: readonly string[]): EncodedPrompt {
  if (writer.kind !== "segments") return tokenizer.encodeChunks(written);
  const { idByText } = tokenizer.addedTokens;
  let escaped = false;
  const parts = written.map((segment) => {
    const mark = idByText.get(segment);
    if (mark !== undefined) return Int32Array.of(mark);
    const restored = tokenizer.guard.restore(segment);
    escaped ||= restored.escaped;
    return tokenizer.encodePlain(restored.text);
  });
  return { ids: joinIds(parts), special_text_escaped: escaped };
}
