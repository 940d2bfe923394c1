/** Message content that may only be text: one part is its string, several stay parts, anything else is refused. */
import type { ContentPart } from "@tito/format";
import { Fields, unsupported } from "../json/fields.js";
import type { JsonNode } from "../json/raw-json.js";

/**
 * A single text part and the plain string are the same content (harnesses flip between the two forms for one message).
 * @param textOf reads the text of a part, or returns null when the part is not text.
 * @throws TitoError `unsupported` for images, files, audio: nothing but text can be told to the policy.
 */
export function readTextContent(
  node: JsonNode | null,
  where: string,
  textOf: (part: Fields, type: string) => string | null,
): string | ContentPart[] {
  if (node === null) return "";
  if (node.type === "string") return node.value;
  if (node.type !== "array") throw unsupported(where, "content must be a string or a list of text parts");
  const texts = node.items.map((item, index) => {
    const part = Fields.of(item, `${where}[${index}]`);
    const type = part.requiredString("type");
    const text = textOf(part, type);
    if (text === null)
      throw unsupported(part.where, `content of type ${type} cannot be given to the policy; only text can`);
    return text;
  });
  return joinTexts(texts);
}

export function joinTexts(texts: readonly string[]): string | ContentPart[] {
  if (texts.length === 0) return "";
  if (texts.length === 1) return texts[0]!;
  return texts.map((text) => ({ type: "text", text }));
}
