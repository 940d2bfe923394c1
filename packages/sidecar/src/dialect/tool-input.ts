/**
 * Tool arguments are JSON text to a policy and an object to the Messages API. The object is spliced in as it was sampled.
 * Text that is no JSON object travels inside one, under a name of ours, and is taken out again when the harness sends it back.
 */
import { type JsonNode, parseJsonText } from "../json/raw-json.js";

const MALFORMED_KEY = "malformed_arguments";

/** The JSON text of `input` for sampled arguments. Empty arguments are an empty object. */
export function wrapArguments(args: string): string {
  if (args.trim() === "") return "{}";
  return isObjectText(args) ? args : `{${JSON.stringify(MALFORMED_KEY)}:${JSON.stringify(args)}}`;
}

/** Arguments as they were sampled, from an echoed `input` and its spelling. */
export function unwrapArguments(input: JsonNode, raw: string): string {
  if (input.type !== "object" || input.members.size !== 1) return raw;
  const malformed = input.members.get(MALFORMED_KEY);
  return malformed?.type === "string" && !isObjectText(malformed.value) ? malformed.value : raw;
}

function isObjectText(text: string): boolean {
  try {
    return parseJsonText(text).type === "object";
  } catch {
    return false;
  }
}
