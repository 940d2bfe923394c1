/** What of a chat body the template sees beside messages and tools. The renderer takes what it can pass on exactly, and refuses the rest. */
import { TitoError } from "@tito/format";
import type { TemplateArguments } from "@tito/renderer";
import { asObject, asString } from "../json/narrow.js";
import { type CutObject, memberText } from "../json/slices.js";

/** Fields that would change the prompt in a way that a bundle does not do. `neutral` is the value that changes nothing. */
const REFUSED: readonly { name: string; neutral: string }[] = [
  { name: "chat_template", neutral: "null" },
  { name: "documents", neutral: "null" },
  { name: "continue_final_message", neutral: "false" },
  { name: "add_generation_prompt", neutral: "true" },
  { name: "add_special_tokens", neutral: "false" },
];

/** Arguments that the request itself gives to the template: `chat_template_kwargs` and `reasoning_effort`. Null: none. @throws TitoError `unsupported`. */
export function templateArgumentsOf(chatBody: CutObject | undefined): TemplateArguments | null {
  if (chatBody === undefined) return null;
  const read = (name: string): string => memberText(chatBody, name) ?? "null";
  for (const { name, neutral } of REFUSED) {
    const text = read(name);
    if (text !== "null" && text !== neutral) {
      throw new TitoError("unsupported", `${name}: a renderer bundle renders its own template only`, {
        hint: "leave the field away, or use --renderer engine",
      });
    }
  }
  const given = new Map<string, string | number | boolean | null>();
  for (const [name, value] of Object.entries(asObject(JSON.parse(read("chat_template_kwargs"))) ?? {})) {
    if (typeof value === "object" && value !== null) {
      throw new TitoError("unsupported", `chat_template_kwargs.${name}: only text, numbers, true, false and null`);
    }
    given.set(name, value as string | number | boolean | null);
  }
  const effort = asString(JSON.parse(read("reasoning_effort")));
  if (effort !== null && !given.has("reasoning_effort")) given.set("reasoning_effort", effort);
  return given.size === 0 ? null : Object.fromEntries(given);
}
